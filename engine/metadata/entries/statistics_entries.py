"""Entries of `column_stats` and `partition_stats`: ranges of columns in files and in partitions.

A statistic: the range of one column in a file or a partition, as metadata records hold it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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
from lakewarden.engine.metadata.entries.changes import ColumnSummary, TableChange
from lakewarden.engine.metadata.entries.value_types import (
    NOTHING_SEEN,
    WRAPPERS,
    Bound,
    ValueType,
    common_type,
    converted,
    early_value_type,
    order_of,
    plain_bound,
    value_type,
)
from lakewarden.engine.metadata.reading.column_stats import STATS_COLUMN
from lakewarden.engine.metadata.reading.partition import MetadataPartition


@dataclass(frozen=True, slots=True)
class Statistic:
    """What is known of one column in one file, or in all files of a partition.

    Bounds are plain, and None where every value is null.
    """

    kind: ValueType
    low: Bound | None
    high: Bound | None
    value_count: int
    null_count: int
    packed_bytes: int = 0
    unpacked_bytes: int = 0


def statistic_of(summary: ColumnSummary) -> Statistic | None:
    """A summary as a statistic; None for a column of a type that has none."""
    counts = (
        summary.value_count,
        summary.null_count,
        summary.packed_bytes,
        summary.unpacked_bytes,
    )
    if summary.minimum is None or summary.maximum is None:
        return Statistic(NOTHING_SEEN, None, None, *counts)
    kind = value_type(summary.minimum.type)
    if kind is None:
        return None
    return Statistic(kind, plain_bound(summary.minimum), plain_bound(summary.maximum), *counts)


def statistic_in(entry: Mapping[str, object]) -> Statistic | None:
    """The statistic in a metadata record; None where its bounds are not known.

    That is so where there are values besides nulls, but no bounds.
    """
    low, high = entry["minValue"], entry["maxValue"]
    kind = _described(entry.get("valueType"), low)
    value_count, null_count = _count(entry["valueCount"]), _count(entry["nullCount"])
    if kind is None or ((low is None or high is None) and null_count != value_count):
        return None
    sizes = _count(entry["totalSize"]), _count(entry["totalUncompressedSize"])
    return Statistic(kind, _bound(low, kind), _bound(high, kind), value_count, null_count, *sizes)


def union(statistics: Sequence[Statistic]) -> Statistic | None:
    """The statistic of all together; None when bounds of unlike types cannot be compared."""
    whole, *others = statistics
    for other in others:
        joined = _union(whole, other)
        if joined is None:
            return None
        whole = joined
    return whole


def _union(one: Statistic, other: Statistic) -> Statistic | None:
    kind = _kind(one, other)
    if kind is None:
        return None
    bounds = [
        (converted(each.low, each.kind, kind), converted(each.high, each.kind, kind))
        for each in (one, other)
        if each.low is not None and each.high is not None
    ]
    return Statistic(
        kind,
        min((low for low, _ in bounds), key=order_of, default=None),
        max((high for _, high in bounds), key=order_of, default=None),
        one.value_count + other.value_count,
        one.null_count + other.null_count,
        one.packed_bytes + other.packed_bytes,
        one.unpacked_bytes + other.unpacked_bytes,
    )


def _kind(one: Statistic, other: Statistic) -> ValueType | None:
    """The type of both; that of a statistic without bounds does not matter."""
    if other.low is None:
        return one.kind if one.kind != NOTHING_SEEN else other.kind
    return other.kind if one.low is None else common_type(one.kind, other.kind)


def _described(value_type: object, bound: object) -> ValueType | None:
    if isinstance(value_type, Mapping):
        detail = value_type["additionalInfo"]
        return ValueType(int(value_type["typeOrdinal"]), None if detail is None else str(detail))
    return early_value_type(_wrapper_and_value(bound)[0])


def _bound(wrapped: object, kind: ValueType) -> Bound | None:
    _, value = _wrapper_and_value(wrapped)
    return kind.plain(value) if isinstance(value, bool | int | float | str | bytes) else None


def _wrapper_and_value(wrapped: object) -> tuple[str | None, object]:
    """The branch of the union that is filled, and its value."""
    if isinstance(wrapped, Mapping):
        for name, branch in wrapped.items():
            if isinstance(branch, Mapping):
                return str(name), branch.get("value")
    return None, None


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


# File name -> column -> statistic; None where bounds are not known.
FileStatistics = Mapping[str, Mapping[str, Statistic | None]]
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
    known: Callable[[], MetadataPartition],
    *,
    is_early: bool,
    key_of: Callable[[str, str], str] = partition_stats_key,
) -> Entries:
    """The statistics of touched partitions, made anew from those of all their live files.

    `known` opens the statistics of files that are older than the change. Where a partition has no
    files left, or the bounds of a column are not known, the statistic is removed: without one,
    readers leave nothing out.
    """
    statistics, gone = _of_partitions(change, columns, known, key_of)
    return _entries_of_partitions(statistics, gone, is_early=is_early)


def wider_partition_entries(
    change: TableChange,
    columns: Sequence[str],
    known: Callable[[], MetadataPartition],
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
    known: Callable[[], MetadataPartition],
    key_of: Callable[[str, str], str],
) -> tuple[dict[str, _OfPartition], list[str]]:
    """The statistics of the touched partitions by their keys, and the keys that have none."""
    statistics: dict[str, _OfPartition] = {}
    gone: list[str] = []
    of_partitions = _of_live_files(change, columns, known)
    for partition, files in change.live_files.items():
        by_file = of_partitions[partition]
        for column in columns:
            key = key_of(column, partition)
            whole = _of_partition(by_file, column)
            if whole is not None:
                statistics[key] = (partition or NO_PARTITION_NAME, column, whole)
            elif by_file or not files:
                gone.append(key)
    gone += [
        key_of(column, partition) for partition in change.deleted_partitions for column in columns
    ]
    return statistics, gone


def _of_partition(by_file: FileStatistics, column: str) -> Statistic | None:
    """The statistic of a partition from those of its files; None unless all are known."""
    members = [
        of_file[column] if column in of_file else _of_absent_column(of_file)
        for of_file in by_file.values()
    ]
    known = [member for member in members if member is not None]
    return union(known) if known and len(known) == len(members) else None


def _of_absent_column(of_file: Mapping[str, Statistic | None]) -> Statistic:
    """A column that a file was written without is null in all its rows."""
    rows = max((one.value_count for one in of_file.values() if one is not None), default=0)
    return Statistic(NOTHING_SEEN, None, None, rows, rows)


def _of_live_files(
    change: TableChange, columns: Sequence[str], known: Callable[[], MetadataPartition]
) -> dict[str, FileStatistics]:
    """The statistics of the live files of each touched partition, new ones and older ones."""
    new = {
        (file.partition, file.name): {
            column: statistic_of(one) for column, one in file.columns.items()
        }
        for file in change.new_files
    }
    live = [(partition, name) for partition, names in change.live_files.items() for name in names]
    older = [file for file in live if file not in new]
    # One lookup for all partitions: each reads the logs of the statistics anew.
    found = new | _read(known(), older, columns) if older else new
    return {
        partition: {name: found[partition, name] for name in names if found.get((partition, name))}
        for partition, names in change.live_files.items()
    }


def _read(
    statistics: MetadataPartition, files: Sequence[tuple[str, str]], columns: Sequence[str]
) -> dict[tuple[str, str], dict[str, Statistic | None]]:
    """What is known of files, each given by its partition and name."""
    # A file may have the name of another one in another partition.
    asked = {
        column_stats_key(column, partition, name): (partition, name)
        for partition, name in files
        for column in columns
    }
    newest = statistics.lookup(list(asked), [STATS_COLUMN]).newest()
    found: dict[tuple[str, str], dict[str, Statistic | None]] = {}
    entries = newest.values.column(STATS_COLUMN).to_pylist()
    for key, entry in zip(text_keys(newest.keys), entries, strict=True):
        if entry is not None and not entry["isDeleted"]:
            found.setdefault(asked[key], {})[entry["columnName"]] = statistic_in(entry)
    return found


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
