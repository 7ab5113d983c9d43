"""The `column_stats` partition: bounds and null counts of each column of each file."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from lakewarden.engine.formats.hashing import column_stats_prefix, partition_stats_key
from lakewarden.engine.formats.parquet_values import as_scalar
from lakewarden.engine.metadata.encoding.records import text_keys
from lakewarden.engine.metadata.reading.column_range import ColumnRange
from lakewarden.engine.metadata.reading.partition import MetadataPartition

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
    if not isinstance(wrapped, Mapping):
        return None
    chosen = next((branch for branch in wrapped.values() if isinstance(branch, Mapping)), None)
    return None if chosen is None else chosen.get("value", chosen.get("wrappedValues"))


def _decimal(unscaled: bytes, detail: str) -> pa.Scalar | None:
    precision, _, scale = detail.partition(",")
    number = int.from_bytes(unscaled, "big", signed=True)
    return as_scalar(number, pa.decimal128(int(precision), int(scale)))
