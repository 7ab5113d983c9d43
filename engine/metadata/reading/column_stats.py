"""The `column_stats` partition: bounds and null counts of each column of each file.

Column ranges: bounds and null counts of a column in a file, and when they can be trusted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.hashing import column_stats_prefix, partition_stats_key
from lakewarden.engine.formats.parquet_footer import as_scalar
from lakewarden.engine.formats.widening import says_micros
from lakewarden.engine.metadata.encoding.records import text_keys
from lakewarden.engine.metadata.reading.partition import MetadataPartition

# Java orders text by UTF-16 units, Arrow by bytes; the two agree on text below the surrogates.
_FIRST_SURROGATE = "\ud800"


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """The values of one column: bounds (None when all are null or there are none) and counts."""

    minimum: pa.Scalar | None
    maximum: pa.Scalar | None
    null_count: int
    value_count: int

    @property
    def is_all_null(self) -> bool:
        return self.minimum is None and self.null_count == self.value_count

    @property
    def is_unknown(self) -> bool:
        return self.minimum is None and self.null_count != self.value_count

    @property
    def is_trusted(self) -> bool:
        """Whether the bounds can be compared with others; a doubtful one is lost in a union."""
        if self.minimum is None or self.maximum is None:
            return False
        if pa.types.is_floating(self._type):
            # Java takes 0.0 for both bounds of a row group that has a NaN, and joins row groups:
            # around a zero, any value may have been skipped. A NaN is no bound.
            low, high = self.minimum.as_py(), self.maximum.as_py()
            return bool(0.0 < low <= high or low <= high < 0.0)
        if pa.types.is_string(self._type):
            return _has_one_order(self.minimum.as_py()) and _has_one_order(self.maximum.as_py())
        return True

    def union(self, other: "ColumnRange") -> "ColumnRange":
        """The range of both together; unknown when the two were written with unlike types."""
        null_count = self.null_count + other.null_count
        value_count = self.value_count + other.value_count
        if self.is_all_null or other.is_all_null:
            bounds = other if self.is_all_null else self
            return ColumnRange(bounds.minimum, bounds.maximum, null_count, value_count)
        if not (self.is_trusted and other.is_trusted) or self._type != other._type:
            return ColumnRange(None, None, null_count, max(value_count, null_count + 1))
        lows = pa.array([self.minimum, other.minimum], type=self._type)
        highs = pa.array([self.maximum, other.maximum], type=self._type)
        return ColumnRange(pc.min(lows), pc.max(highs), null_count, value_count)

    @property
    def _type(self) -> pa.DataType:
        assert self.minimum is not None
        return self.minimum.type

    def bounds(self, type_: pa.DataType) -> tuple[pa.Scalar, pa.Scalar] | None:
        """The bounds in a column's type, or None where they can't be trusted."""
        if self.minimum is None or self.maximum is None or not _keeps_order(self._type, type_):
            return None
        if not self.is_trusted:
            return None
        low, high = self.minimum, self.maximum
        if self._type == type_:
            return low, high
        if says_micros(self._type, type_):
            low, high = low.cast(pa.int64()), high.cast(pa.int64())
        try:
            return low.cast(type_), high.cast(type_)
        except pa.ArrowInvalid:
            return None


def _keeps_order(written: pa.DataType, read: pa.DataType) -> bool:
    if written == read:
        return True
    if pa.types.is_integer(written):
        return bool(pa.types.is_integer(read) or pa.types.is_floating(read))
    if pa.types.is_floating(written) and pa.types.is_floating(read):
        return bool(written.bit_width <= read.bit_width)
    same_family = (
        (pa.types.is_decimal, pa.types.is_decimal),
        (pa.types.is_timestamp, pa.types.is_timestamp),
    )
    return any(was(written) and becomes(read) for was, becomes in same_family)


def _has_one_order(text: str) -> bool:
    return text.isascii() or all(character < _FIRST_SURROGATE for character in text)


STATS_COLUMN = "ColumnStatsMetadata"

# Partition path -> file name -> column -> range.
ColumnRanges = dict[str, dict[str, dict[str, ColumnRange]]]

_DATE, _DECIMAL = 12, 10
_TIMESTAMPS = {
    15: pa.timestamp("ms", "UTC"),
    16: pa.timestamp("us", "UTC"),
    17: pa.timestamp("ns", "UTC"),
    18: pa.timestamp("ms"),
    19: pa.timestamp("us"),
    20: pa.timestamp("ns"),
}
_FLOAT = 5
_TEXT = "StringWrapper"

TextBounds = tuple[str, str]


def column_ranges(
    statistics: MetadataPartition, columns: Sequence[str], partitions: Sequence[str]
) -> ColumnRanges:
    """What is known of the given columns in the files of the given partitions."""
    owners = {
        column_stats_prefix(column, partition): (column, partition)
        for partition in partitions
        for column in columns
    }
    newest = statistics.lookup_prefixes(list(owners), [STATS_COLUMN]).newest()
    width = len(next(iter(owners), ""))
    found: ColumnRanges = {}
    entries = newest.values.column(STATS_COLUMN).to_pylist()
    for key, entry in zip(text_keys(newest.keys), entries, strict=True):
        owner = owners.get(key[:width])
        if owner is not None and entry is not None and not entry["isDeleted"]:
            column, partition = owner
            files = found.setdefault(partition, {})
            files.setdefault(entry["fileName"], {})[column] = range_of(entry)
    return found


def text_bounds(
    statistics: MetadataPartition, column: str, partitions: Sequence[str]
) -> dict[str, dict[str, TextBounds | None]]:
    """The least and the greatest text of a column in files by partition; None where there is none.

    Files of which they are not known, or cannot be compared, are omitted. It is what ranges say of
    a column of texts, for all files at once.
    """
    owners = {column_stats_prefix(column, partition): partition for partition in partitions}
    newest = statistics.lookup_prefixes(list(owners), [STATS_COLUMN]).newest()
    width = len(next(iter(owners), ""))
    said = newest.values.column(STATS_COLUMN)
    found: dict[str, dict[str, TextBounds | None]] = {}
    if not pa.types.is_struct(said.type):
        return found
    is_empty = pc.struct_field(said, "minValue").is_null().to_pylist()
    plain = (
        pc.struct_field(said, one).to_pylist()
        for one in ("fileName", "isDeleted", "nullCount", "valueCount")
    )
    ends = (_texts(said, one) for one in ("minValue", "maxValue"))
    for key, name, is_gone, nulls, values, is_null, low, high in zip(
        text_keys(newest.keys), *plain, is_empty, *ends, strict=True
    ):
        partition = owners.get(key[:width])
        if partition is None or name is None or is_gone:
            continue
        if low is not None and high is not None and _has_one_order(low) and _has_one_order(high):
            found.setdefault(partition, {})[name] = low, high
        elif is_null and _count(nulls) == _count(values):
            found.setdefault(partition, {})[name] = None
    return found


def _texts(said: pa.ChunkedArray, end: str) -> list[str | None]:
    """A bound of each entry, where it is a text."""
    wrappers = said.type.field(end).type
    if not pa.types.is_struct(wrappers) or wrappers.get_field_index(_TEXT) < 0:
        return [None] * len(said)
    texts: list[str | None] = pc.struct_field(said, [end, _TEXT, "value"]).to_pylist()
    return texts


def partition_ranges(
    statistics: MetadataPartition, columns: Sequence[str], partitions: Sequence[str]
) -> dict[str, dict[str, ColumnRange]]:
    """What `partition_stats` say of the given columns, by partition path.

    Reads do not prune by them: some releases of Hudi write bounds that leave out live rows.
    """
    owners = {
        partition_stats_key(column, partition): (column, partition)
        for partition in partitions
        for column in columns
    }
    newest = statistics.lookup(list(owners), [STATS_COLUMN]).newest()
    found: dict[str, dict[str, ColumnRange]] = {}
    entries = newest.values.column(STATS_COLUMN).to_pylist()
    for key, entry in zip(text_keys(newest.keys), entries, strict=True):
        if entry is not None and not entry["isDeleted"]:
            column, partition = owners[key]
            found.setdefault(partition, {})[column] = range_of(entry)
    return found


def range_of(entry: Mapping[str, object]) -> ColumnRange:
    """A statistics record as a range."""
    kind = entry.get("valueType")
    ordinal, detail = None, None
    if isinstance(kind, Mapping):
        ordinal, detail = kind["typeOrdinal"], kind["additionalInfo"]
    return ColumnRange(
        _bound(entry["minValue"], ordinal, detail),
        _bound(entry["maxValue"], ordinal, detail),
        _count(entry["nullCount"]),
        _count(entry["valueCount"]),
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _bound(wrapped: object, ordinal: object, detail: object) -> pa.Scalar | None:
    """A wrapped bound as a scalar; since 1.1 its meaning is in the value type."""
    value = _unwrapped(wrapped)
    if value is None or isinstance(value, list):
        return None
    if ordinal == _DATE:
        return pa.scalar(value, pa.int32()).cast(pa.date32())
    if ordinal == _FLOAT:
        return pa.scalar(value, pa.float32())
    if ordinal == _DECIMAL and isinstance(value, bytes) and isinstance(detail, str):
        return _decimal(value, detail)
    if isinstance(ordinal, int) and ordinal in _TIMESTAMPS:
        return pa.scalar(value, pa.int64()).cast(_TIMESTAMPS[ordinal])
    return pa.scalar(value)


def _unwrapped(wrapped: object) -> object:
    # Asked of each file of a partition: to recognise a dictionary takes far less than any mapping.
    if not isinstance(wrapped, dict):
        return None
    chosen = next((branch for branch in wrapped.values() if isinstance(branch, dict)), None)
    return None if chosen is None else chosen.get("value", chosen.get("wrappedValues"))


def _decimal(unscaled: bytes, detail: str) -> pa.Scalar | None:
    precision, _, scale = detail.partition(",")
    number = int.from_bytes(unscaled, "big", signed=True)
    return as_scalar(number, pa.decimal128(int(precision), int(scale)))
