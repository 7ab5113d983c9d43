"""Entries of `column_stats` and `partition_stats`: ranges of columns in files and in partitions."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.hashing import (
    NO_PARTITION_NAME,
    column_stats_key,
    partition_stats_key,
)
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.encoding.records import (
    COLUMN_STATISTICS,
    PARTITION_STATISTICS,
    Entries,
    encode_values,
    text_keys,
)
from lakewarden.engine.metadata.entries.changes import TableChange
from lakewarden.engine.metadata.entries.statistics import (
    KnownFiles,
    Statistic,
    figures_of_partitions,
    statistic_in,
    statistic_of,
    union,
)
from lakewarden.engine.metadata.entries.value_types import WRAPPERS, Bound, ValueType
from lakewarden.engine.metadata.reading.column_stats import STATS_COLUMN
from lakewarden.engine.metadata.reading.partition import MetadataPartition

# The name of a partition, a column, and its statistic there.
_OfPartition = tuple[str, str, Statistic]
_NO_WRAPPER = "IntWrapper"


def column_stats_entries(change: TableChange, columns: Sequence[str], *, is_early: bool) -> Entries:
    """The statistics of new files; those of files that are gone are removed, of all columns."""
    found = {
        column_stats_key(column, file.partition, file.name): (file.name, column, statistic)
        for file in change.new_files
        for column, summary in file.columns.items()
        if (statistic := statistic_of(summary)) is not None
    }
    gone = [
        column_stats_key(column, partition, name)
        for partition, names in change.deleted_files.items()
        for name in names
        for column in columns
    ]
    values = _records(list(found.values()), COLUMN_STATISTICS, is_early=is_early)
    return Entries.of(list(found), values, gone)


def partition_stats_entries(
    change: TableChange,
    columns: Sequence[str],
    known: KnownFiles,
    *,
    is_early: bool,
    key_of: Callable[[str, str], str] = partition_stats_key,
) -> Entries:
    """The statistics of touched partitions, made from those of all their live files.

    `known` has the statistics of files that are older than the change. Where a partition has no
    files left, or the bounds of a column are not known, the statistic is removed: without one,
    readers leave nothing out.
    """
    statistics, gone = _of_partitions(change, columns, known, key_of)
    return _entries_of_partitions(statistics, gone, is_early=is_early)


def wider_partition_entries(
    change: TableChange,
    columns: Sequence[str],
    known: KnownFiles,
    said: Callable[[], MetadataPartition],
    *,
    is_early: bool,
    key_of: Callable[[str, str], str] = partition_stats_key,
) -> Entries:
    """The same, wide enough for what is `said` of the partitions now, whatever becomes of it.

    Nothing is said of a partition that has no statistic now.
    """
    statistics, gone = _of_partitions(change, columns, known, key_of)
    newest = said().lookup([*statistics, *gone], [STATS_COLUMN]).newest()
    wider: dict[str, _OfPartition] = {}
    entries = newest.values.column(STATS_COLUMN).to_pylist()
    for key, entry in zip(text_keys(newest.keys), entries, strict=True):
        if key not in statistics or entry is None or entry["isDeleted"]:
            continue
        name, column, own = statistics[key]
        there = statistic_in(entry)
        whole = None if there is None else union([there, own])
        if whole is None:
            gone.append(key)
        else:
            wider[key] = (name, column, whole)
    return _entries_of_partitions(wider, gone, is_early=is_early)


def _entries_of_partitions(
    statistics: Mapping[str, _OfPartition], gone: Sequence[str], *, is_early: bool
) -> Entries:
    values = _records(list(statistics.values()), PARTITION_STATISTICS, is_early=is_early)
    return Entries.of(list(statistics), values, gone)


def _of_partitions(
    change: TableChange,
    columns: Sequence[str],
    known: KnownFiles,
    key_of: Callable[[str, str], str],
) -> tuple[dict[str, _OfPartition], list[str]]:
    """The statistics of the touched partitions by their keys, and the keys that have none."""
    statistics: dict[str, _OfPartition] = {}
    gone: list[str] = []
    for partition, figures in figures_of_partitions(change, columns, known).items():
        for column, whole in figures.by_column.items():
            key = key_of(column, partition)
            if whole is not None:
                statistics[key] = (partition or NO_PARTITION_NAME, column, whole)
            elif figures.counted or not change.live_files[partition]:
                gone.append(key)
    gone += [
        key_of(column, partition) for partition in change.deleted_partitions for column in columns
    ]
    return statistics, gone


def _records(
    found: Sequence[tuple[str, str, Statistic]], kind: int, *, is_early: bool
) -> pa.LargeBinaryArray:
    """Records of statistics; those of a partition are tight bounds, which replace earlier ones."""
    statistics = [statistic for _, _, statistic in found]
    fields = {
        "fileName": pa.array([name for name, _, _ in found], pa.string()),
        "columnName": pa.array([column for _, column, _ in found], pa.string()),
        "minValue": _wrapped([(one.kind, one.low) for one in statistics], is_early=is_early),
        "maxValue": _wrapped([(one.kind, one.high) for one in statistics], is_early=is_early),
        "valueCount": pa.array([one.value_count for one in statistics], pa.int64()),
        "nullCount": pa.array([one.null_count for one in statistics], pa.int64()),
        "totalSize": pa.array([one.packed_bytes for one in statistics], pa.int64()),
        "totalUncompressedSize": pa.array([one.unpacked_bytes for one in statistics], pa.int64()),
        "isDeleted": pa.array([False] * len(found), pa.bool_()),
        "isTightBound": pa.array([kind == PARTITION_STATISTICS] * len(found), pa.bool_()),
        "valueType": pa.nulls(len(found)) if is_early else _kinds(statistics),
    }
    content = pa.StructArray.from_arrays(list(fields.values()), names=list(fields))
    return encode_values(np.full(len(found), kind), STATS_COLUMN, content)


def _kinds(statistics: Sequence[Statistic]) -> pa.StructArray:
    ordinals = pa.array([one.kind.ordinal for one in statistics], pa.int32())
    details = pa.array([one.kind.detail for one in statistics], pa.string())
    return pa.StructArray.from_arrays([ordinals, details], names=["typeOrdinal", "additionalInfo"])


def _wrapped(bounds: Sequence[tuple[ValueType, Bound | None]], *, is_early: bool) -> pa.StructArray:
    """Bounds in a column for each wrapper in use."""
    wrappers = [
        None if bound is None else _wrapper(kind, is_early=is_early) for kind, bound in bounds
    ]
    children = {}
    # A union needs some branch to be no value of.
    for wrapper in sorted({one for one in wrappers if one is not None} or {_NO_WRAPPER}):
        stored = [
            kind.stored(bound) if bound is not None and its_wrapper == wrapper else None
            for its_wrapper, (kind, bound) in zip(wrappers, bounds, strict=True)
        ]
        values = pa.array(stored, WRAPPERS[wrapper])
        mask = pc.is_null(values)
        children[wrapper] = pa.StructArray.from_arrays([values], names=["value"], mask=mask)
    return pa.StructArray.from_arrays(list(children.values()), names=list(children))


def _wrapper(kind: ValueType, *, is_early: bool) -> str:
    wrapper = kind.wrapper(is_early=is_early)
    if wrapper is None:
        # Leaving the entry out would say that all values are null.
        raise InvalidRequest(
            "unsupported_early_statistics",
            what=(
                "The table's column statistics have the format from before release 1.1, "
                "which cannot hold the type of one of its columns."
            ),
            why=(
                "That format holds numbers, text, booleans, dates and timestamps in microseconds."
            ),
            now="Rebuild them: CALL refresh_index(index_name => 'column_stats', ...).",
        )
    return wrapper
