"""Column statistics, seen from outside: the range of each column in each file, and overlaps."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.reading.column_stats import ColumnRange, column_ranges
from lakewarden.engine.metadata.reading.table import COLUMN_STATS
from lakewarden.engine.services.inspection.metadata_table import metadata_listing
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.schema import META_COLUMNS


@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumn:
    """What is known of one column in one file."""

    partition: str
    file_name: str
    column: str
    range: ColumnRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """How many base files of a partition a query for one value of a column has to read.

    Looked at are all bounds of the files; the shares say how many files that is at most, for so
    many of the bounds.
    """

    partition: str
    column: str
    average: float
    most: int
    files_count: int
    at_50_percent: int
    at_75_percent: int
    at_95_percent: int
    at_99_percent: int
    values_count: int


def file_statistics(
    state: Snapshot, partitions: Sequence[str] = (), columns: Sequence[str] = ()
) -> Iterator[FileColumn]:
    """The statistics of the files of the newest slices, in all that is not named."""
    chosen, slices = _columns(state, columns), _slices(state, partitions)
    ranges = column_ranges(
        state.metadata.partition(COLUMN_STATS),
        chosen,
        sorted({one.partition for one in slices}),
    )
    for slice_ in slices:
        known = ranges.get(slice_.partition, {})
        for name in _files(slice_):
            for column, found in known.get(name, {}).items():
                yield FileColumn(
                    partition=slice_.partition, file_name=name, column=column, range=found
                )


def overlaps(
    state: Snapshot, partitions: Sequence[str] = (), columns: Sequence[str] = ()
) -> Iterator[Overlap]:
    """The overlaps of each column in each partition, by column and average."""
    chosen = columns or [one for one in _columns(state, ()) if one not in META_COLUMNS]
    slices = _slices(state, partitions)
    bases = {one.base_file.name for one in slices if one.base_file is not None}
    counts = Counter(one.partition for one in slices)
    groups: dict[tuple[str, str], list[ColumnRange]] = {}
    for one in file_statistics(state, partitions, chosen):
        if one.file_name in bases and _can_be_compared(one.range):
            groups.setdefault((one.partition, one.column), []).append(one.range)
    found = [_overlap(*key, ranges, counts[key[0]]) for key, ranges in groups.items()]
    yield from sorted(found, key=lambda one: (one.column, one.average, one.partition))


def _overlap(partition: str, column: str, ranges: list[ColumnRange], files_count: int) -> Overlap:
    lows, highs = (sorted(side) for side in zip(*map(_pair, ranges), strict=True))
    # How many ranges have started at a bound, without those that have ended before it.
    covering = sorted(
        bisect_right(lows, bound) - bisect_left(highs, bound) for bound in {*lows, *highs}
    )

    def at(share: float) -> int:
        return covering[int(share * (len(covering) - 1))]

    return Overlap(
        partition=partition,
        column=column,
        average=sum(covering) / len(covering),
        most=covering[-1],
        files_count=files_count,
        at_50_percent=at(0.50),
        at_75_percent=at(0.75),
        at_95_percent=at(0.95),
        at_99_percent=at(0.99),
        values_count=len(covering),
    )


def _pair(range_: ColumnRange) -> tuple[Any, Any]:
    assert range_.minimum is not None
    assert range_.maximum is not None
    return range_.minimum.as_py(), range_.maximum.as_py()


def _can_be_compared(range_: ColumnRange) -> bool:
    """Whether there are bounds, and neither is NaN, which has no place among numbers."""
    if range_.minimum is None or range_.maximum is None:
        return False
    return all(bound == bound for bound in _pair(range_))


def _slices(state: Snapshot, partitions: Sequence[str]) -> tuple[FileSlice, ...]:
    source = metadata_listing(state)
    unknown = sorted(set(partitions) - set(source.partitions()))
    if unknown:
        raise unknown_partition(unknown[0])
    groups = state.file_groups(state.visibility(), tuple(partitions) or None, use_metadata=True)
    return tuple(group.latest_merged() for group in groups)


def _files(slice_: FileSlice) -> list[str]:
    base = [slice_.base_file.name] if slice_.base_file else []
    return base + [log.name for log in slice_.log_files]


def _columns(state: Snapshot, wanted: Sequence[str]) -> tuple[str, ...]:
    """The columns that are wanted, of those that the table keeps statistics of."""
    if not state.config.has_metadata(COLUMN_STATS):
        raise _no_statistics(state)
    defined = next(one.columns for one in state.definitions if one.partition == COLUMN_STATS)
    unknown = sorted(set(wanted) - set(defined))
    if unknown:
        raise _unknown_column(unknown[0], defined)
    return tuple(wanted) or defined


def unknown_partition(partition: str) -> InvalidRequest:
    return InvalidRequest(
        "unknown_partition",
        what=f"The table has no partition {partition!r}.",
        why="A partition is named by its path below the table.",
        now="Look at the table's partitions.",
        partition=partition,
    )


def _unknown_column(column: str, defined: Sequence[str]) -> InvalidRequest:
    nearest = get_close_matches(column, defined, n=1)
    return InvalidRequest(
        "unknown_statistics_column",
        what=f"The table has no statistics of a column {column!r}.",
        why=f"It has statistics of {', '.join(defined)}.",
        now=f"Did you mean {nearest[0]!r}?" if nearest else "Name one of them.",
        column=column,
    )


def _no_statistics(state: Snapshot) -> InvalidRequest:
    return InvalidRequest(
        "no_column_stats",
        what=f"The table {state.config.name!r} keeps no column statistics.",
        why="Its metadata table has no partition column_stats.",
        now="Build them: CALL create_index(index_name => 'column_stats', ...).",
        table=state.config.name,
    )
