"""Parquet footers: the key index that Hudi puts into base files, and each column's value range.

Physical values in parquet statistics: made comparable, and typed as Arrow types them.

Going by way of the physical value keeps what Python's own dates and decimals cannot hold: instants
beyond the year 9999, nanoseconds, 38 digits.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.engine.formats.bloom import BloomFilter, parse_bloom

Comparable: TypeAlias = bool | int | float | bytes

# More digits than any decimal of Arrow has.
_EXACT = Context(prec=100)


def comparable(raw: object, type_: pa.DataType) -> Comparable | None:
    """A physical value in the order of its column's type; None for what has no order."""
    if pa.types.is_decimal(type_) and isinstance(raw, bytes):
        return int.from_bytes(raw, "big", signed=True)
    if pa.types.is_unsigned_integer(type_) and isinstance(raw, int):
        width: int = type_.bit_width
        return raw % (1 << width)
    if isinstance(raw, float) and math.isnan(raw):
        return None
    if pa.types.is_float16(type_) or pa.types.is_null(type_):
        return None
    return raw if isinstance(raw, bool | int | float | bytes) else None


def as_scalar(value: Comparable, type_: pa.DataType) -> pa.Scalar | None:
    """A comparable value as a scalar of its column's type; None when it is no value of it."""
    try:
        if pa.types.is_decimal(type_) and isinstance(value, int):
            return pa.scalar(Decimal(value).scaleb(-type_.scale, _EXACT), type_)
        if pa.types.is_string(type_) and isinstance(value, bytes):
            return pa.scalar(value.decode(), type_)
        return pa.scalar(value, type_)
    except (pa.ArrowException, ValueError, OverflowError, TypeError):
        return None


_BLOOM_FILTER = b"org.apache.hudi.bloomfilter"
_BLOOM_TYPE = b"hoodie_bloom_filter_type_code"
_MIN_KEY = b"hoodie_min_record_key"
_MAX_KEY = b"hoodie_max_record_key"


@dataclass(frozen=True, slots=True)
class KeyFooter:
    """Which record keys a base file has; every part is absent in files without such footers.

    A file without rows has a bloom filter, but no smallest and largest key.
    """

    bloom_text: str | None = field(default=None, repr=False)
    bloom_type: str | None = None
    min_key: str | None = None
    max_key: str | None = None

    def bloom_filter(self, path: str) -> BloomFilter | None:
        """The bloom filter, decoded; `path` is the file it came from."""
        if self.bloom_text is None:
            return None
        return parse_bloom(self.bloom_text, self.bloom_type or "SIMPLE", path)

    def key_values(self) -> dict[str, str]:
        """What to add to a file's footer.

        By `ParquetWriter.add_key_value_metadata`: metadata of an Arrow schema is dropped silently
        by a writer that does not store the schema.
        """
        pairs = (
            (_BLOOM_FILTER, self.bloom_text),
            (_BLOOM_TYPE, self.bloom_type),
            (_MIN_KEY, self.min_key),
            (_MAX_KEY, self.max_key),
        )
        return {name.decode(): value for name, value in pairs if value is not None}


def key_footer(metadata: pq.FileMetaData) -> KeyFooter:
    """The key footer of an open file."""
    return key_footer_of(metadata.metadata or {})


def key_footer_of(pairs: Mapping[bytes, bytes]) -> KeyFooter:
    """The key footer among the texts of a file's footer."""

    def text(name: bytes) -> str | None:
        value = pairs.get(name)
        return None if value is None else value.decode("utf-8", "replace")

    return KeyFooter(text(_BLOOM_FILTER), text(_BLOOM_TYPE), text(_MIN_KEY), text(_MAX_KEY))


@dataclass(frozen=True, slots=True)
class FooterRange:
    """What the footer tells of a leaf column, over all row groups.

    `value_count` includes nulls. The bounds are typed as the column is in Arrow, and are absent
    when there are only nulls, or when a row group with values does not tell its own.
    """

    name: str
    value_count: int
    null_count: int | None
    packed_bytes: int
    unpacked_bytes: int
    minimum: pa.Scalar | None
    maximum: pa.Scalar | None


def column_ranges(metadata: pq.FileMetaData) -> tuple[FooterRange, ...]:
    """The value range of each leaf column, in file order; nested ones have dotted names."""
    schema = metadata.schema
    types = [leaf for column in schema.to_arrow_schema() for leaf in _leaves(column.type)]
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return tuple(
        _column_range(schema.column(number).path, type_, [group.column(number) for group in groups])
        for number, type_ in enumerate(types)
    )


def _leaves(type_: pa.DataType) -> Iterator[pa.DataType]:
    """The types of the leaf columns that a column is stored as, in their order."""
    if pa.types.is_struct(type_):
        for child in type_:
            yield from _leaves(child.type)
    elif pa.types.is_map(type_):
        yield from _leaves(type_.key_type)
        yield from _leaves(type_.item_type)
    elif pa.types.is_list(type_):
        yield from _leaves(type_.value_type)
    else:
        yield type_


def _column_range(
    name: str, type_: pa.DataType, chunks: Sequence[pq.ColumnChunkMetaData]
) -> FooterRange:
    bounds = [_bounds(chunk, type_) for chunk in chunks if not _is_all_null(chunk)]
    known = [pair for pair in bounds if pair is not None]
    is_bounded = bool(known) and len(known) == len(bounds)
    null_counts = [_null_count(chunk) for chunk in chunks]
    known_nulls = [count for count in null_counts if count is not None]
    return FooterRange(
        name=name,
        value_count=sum(chunk.num_values for chunk in chunks),
        null_count=sum(known_nulls) if len(known_nulls) == len(null_counts) else None,
        packed_bytes=sum(chunk.total_compressed_size for chunk in chunks),
        unpacked_bytes=sum(chunk.total_uncompressed_size for chunk in chunks),
        minimum=as_scalar(min(low for low, _ in known), type_) if is_bounded else None,
        maximum=as_scalar(max(high for _, high in known), type_) if is_bounded else None,
    )


def _null_count(chunk: pq.ColumnChunkMetaData) -> int | None:
    statistics = chunk.statistics
    if not chunk.num_values:
        return 0
    if statistics is None or not statistics.has_null_count:
        return None
    count: int = statistics.null_count
    return count


def _is_all_null(chunk: pq.ColumnChunkMetaData) -> bool:
    return bool(chunk.num_values == (_null_count(chunk) or 0))


def _bounds(
    chunk: pq.ColumnChunkMetaData, type_: pa.DataType
) -> tuple[Comparable, Comparable] | None:
    """Smallest and largest value of a column chunk, if its statistics tell them."""
    statistics = chunk.statistics
    if statistics is None or not statistics.has_min_max:
        return None
    low = comparable(statistics.min_raw, type_)
    high = comparable(statistics.max_raw, type_)
    return None if low is None or high is None else (low, high)
