"""Statistics: the range of a column in a file, or in all live files of a partition.

A partition of many files is not read anew at each write: what a write has found out of it holds for
the next one of the process, but for the files that came and went since. Bounds are never narrower
than those of the rows.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakewarden.engine.formats.hashing import column_stats_key
from lakewarden.engine.kernel.caches import ByteBounded
from lakewarden.engine.metadata.encoding.records import text_keys
from lakewarden.engine.metadata.entries.changes import ColumnSummary, TableChange
from lakewarden.engine.metadata.entries.value_types import (
    NOTHING_SEEN,
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

# Of fewer files, all statistics are read as soon as those of the ones that went.
_REMEMBERED_FROM = 16
_MEMORY_BYTES_MAX = 8 << 20
# What the name of a file takes, as a value of Python.
_NAME_BYTES = 200


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
# Column -> statistic of a partition; None unless those of all its files are known.
_OfColumns = Mapping[str, Statistic | None]


@dataclass(frozen=True, slots=True)
class PartitionFigures:
    """What the live files of a partition come to."""

    # Those of which anything is known.
    counted: frozenset[str]
    by_column: _OfColumns


@dataclass(frozen=True, slots=True)
class _Remembered:
    """The same, as the write of an instant has found it out."""

    instant: str
    live: frozenset[str]
    figures: PartitionFigures


@dataclass(frozen=True, slots=True)
class _Difference:
    """The files that came to a partition and that left it since it was remembered."""

    known: _Remembered
    came: frozenset[str]
    left: frozenset[str]


class PartitionMemory:
    """What the writes of a process have found out of partitions with many files."""

    def __init__(self, bytes_max: int = _MEMORY_BYTES_MAX) -> None:
        self._kept: ByteBounded[_Remembered] = ByteBounded(bytes_max)

    def keep(
        self, partition: str, instant: str, live: Collection[str], figures: PartitionFigures
    ) -> None:
        """Remember what a write is about to say, if it is worth that."""
        if len(live) >= _REMEMBERED_FROM:
            known = _Remembered(instant, frozenset(live), figures)
            self._kept.keep(partition, known, _NAME_BYTES * len(live))

    def difference(
        self,
        partition: str,
        live: Collection[str],
        columns: Sequence[str],
        is_continued: Callable[[str], bool],
    ) -> _Difference | None:
        """What has changed since; None where it is not known, or too much to be of use."""
        known = self._kept.get(partition)
        if known is None or set(known.figures.by_column) != set(columns):
            return None
        now = frozenset(live)
        found = _Difference(known, now - known.live, known.live - now)
        is_little = len(found.came) + len(found.left) < len(now) // 2
        return found if is_little and is_continued(known.instant) else None


@dataclass(frozen=True, slots=True)
class KnownFiles:
    """Where statistics of files that are older than a change are found."""

    statistics: Callable[[], MetadataPartition]
    memory: PartitionMemory = field(default_factory=PartitionMemory)
    # Whether what the write of an instant has said of files still holds.
    is_continued: Callable[[str], bool] = lambda _: False


def figures_of_partitions(
    change: TableChange, columns: Sequence[str], known: KnownFiles
) -> dict[str, PartitionFigures]:
    """What the live files of each touched partition come to."""
    new = {
        (file.partition, file.name): {
            column: statistic_of(one) for column, one in file.columns.items()
        }
        for file in change.new_files
    }
    live = change.live_files
    made: dict[str, PartitionFigures] = {}
    differences = {
        partition: difference
        for partition, names in live.items()
        if (difference := known.memory.difference(partition, names, columns, known.is_continued))
    }
    asked = {
        partition: differences[partition].came | differences[partition].left
        if partition in differences
        else frozenset(names)
        for partition, names in live.items()
    }
    # One lookup for all partitions: each reads the logs of the statistics anew.
    found = new | _older(known, asked, new, columns)
    figures = {
        partition: _changed(one, _by_file(found, partition, asked[partition]), columns)
        for partition, one in differences.items()
    }
    # Where files that stay decide, all of them are asked for.
    undecided = {name: live[name] for name, found_out in figures.items() if found_out is None}
    found |= _older(known, undecided, found, columns)
    for partition, names in live.items():
        whole = figures.get(partition) or _figures(_by_file(found, partition, names), columns)
        known.memory.keep(partition, change.instant, names, whole)
        made[partition] = whole
    return made


def _figures(by_file: FileStatistics, columns: Sequence[str]) -> PartitionFigures:
    """What files come to."""
    whole = {column: _together(_members(by_file, column)) for column in columns}
    return PartitionFigures(frozenset(by_file), whole)


def _changed(
    difference: _Difference, by_file: FileStatistics, columns: Sequence[str]
) -> PartitionFigures | None:
    """What was remembered, after files came and left; None if that takes a look at all of them."""
    before = difference.known.figures
    left = difference.left & before.counted
    if not left <= by_file.keys():
        return None
    came = {name: one for name, one in by_file.items() if name in difference.came}
    gone = {name: by_file[name] for name in left}
    by_column: dict[str, Statistic | None] = {}
    for column in columns:
        whole, lost, new = before.by_column[column], _members(gone, column), _members(came, column)
        if None in new or (whole is None and None not in lost):
            by_column[column] = None
            continue
        found = None if whole is None else _replaced(whole, _known(lost), _known(new))
        if found is None:
            return None
        by_column[column] = found
    return PartitionFigures(before.counted - left | came.keys(), by_column)


def _replaced(
    whole: Statistic, lost: Sequence[Statistic], new: Sequence[Statistic]
) -> Statistic | None:
    """A statistic after some members gave way to others; None if the rest decides its bounds."""
    if not _has_ends(whole, lost, new):
        return None
    rest = replace(
        whole,
        value_count=whole.value_count - sum(one.value_count for one in lost),
        null_count=whole.null_count - sum(one.null_count for one in lost),
        packed_bytes=whole.packed_bytes - sum(one.packed_bytes for one in lost),
        unpacked_bytes=whole.unpacked_bytes - sum(one.unpacked_bytes for one in lost),
    )
    if min(rest.value_count, rest.null_count, rest.packed_bytes, rest.unpacked_bytes) < 0:
        return None
    return union([rest, *new])


def _has_ends(whole: Statistic, lost: Sequence[Statistic], new: Sequence[Statistic]) -> bool:
    """Whether both bounds are still reached, as far as that is known without all that is left."""
    ended = [one for one in lost if one.low is not None and one.high is not None]
    if not ended or whole.low is None or whole.high is None:
        return True
    if any(one.kind != whole.kind for one in ended):
        return False
    alike = [one for one in new if one.kind == whole.kind]
    low, high = order_of(whole.low), order_of(whole.high)
    had_low = any(order_of(one.low) <= low for one in ended if one.low is not None)
    had_high = any(order_of(one.high) >= high for one in ended if one.high is not None)
    has_low = any(order_of(one.low) <= low for one in alike if one.low is not None)
    has_high = any(order_of(one.high) >= high for one in alike if one.high is not None)
    return (has_low or not had_low) and (has_high or not had_high)


def _members(by_file: FileStatistics, column: str) -> list[Statistic | None]:
    """What is known of a column in each of some files."""
    return [
        of_file[column] if column in of_file else _of_absent_column(of_file)
        for of_file in by_file.values()
    ]


def _known(members: Sequence[Statistic | None]) -> list[Statistic]:
    return [one for one in members if one is not None]


def _together(members: Sequence[Statistic | None]) -> Statistic | None:
    """The statistic of all members; None unless all are known."""
    known = _known(members)
    return union(known) if known and len(known) == len(members) else None


def _of_absent_column(of_file: Mapping[str, Statistic | None]) -> Statistic:
    """A column that a file was written without is null in all its rows."""
    rows = max((one.value_count for one in of_file.values() if one is not None), default=0)
    return Statistic(NOTHING_SEEN, None, None, rows, rows)


# A file by its partition and name, which another one in another partition may have.
_OfFiles = Mapping[tuple[str, str], Mapping[str, Statistic | None]]


def _by_file(found: _OfFiles, partition: str, names: Collection[str]) -> FileStatistics:
    """What is known of some files of a partition; nothing of files without any statistic."""
    return {name: found[partition, name] for name in names if found.get((partition, name))}


def _older(
    known: KnownFiles,
    asked: Mapping[str, Collection[str]],
    new: _OfFiles,
    columns: Sequence[str],
) -> dict[tuple[str, str], dict[str, Statistic | None]]:
    """What is known of files by partition, but for those that need not be looked up."""
    files = [(partition, name) for partition, names in asked.items() for name in names]
    older = sorted(file for file in files if file not in new)
    if not older:
        return {}
    keys = {
        column_stats_key(column, partition, name): (partition, name)
        for partition, name in older
        for column in columns
    }
    newest = known.statistics().lookup(list(keys), [STATS_COLUMN]).newest()
    found: dict[tuple[str, str], dict[str, Statistic | None]] = {}
    entries = newest.values.column(STATS_COLUMN).to_pylist()
    for key, entry in zip(text_keys(newest.keys), entries, strict=True):
        if entry is not None and not entry["isDeleted"]:
            found.setdefault(keys[key], {})[entry["columnName"]] = statistic_in(entry)
    return found
