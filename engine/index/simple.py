"""Looking for keys in the files themselves, which needs no index and can't be out of date."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.index.incoming import DistinctKeys, Places, distinct_keys, rows_by_partition
from lakewarden.engine.index.key_file import key_columns
from lakewarden.engine.index.latest_slices import latest_file_slices
from lakewarden.engine.index.matches import Matches, matches_by_slice, no_matches
from lakewarden.engine.index.slice_keys import Narrowing, Search, SliceKeys, WantedKeys, any_key
from lakewarden.engine.metadata.reading.column_range import ColumnRange
from lakewarden.engine.metadata.reading.column_stats import column_ranges
from lakewarden.engine.metadata.reading.table import COLUMN_STATS
from lakewarden.engine.read.query.prune import range_of_slice
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows
from lakewarden.engine.table.schema import RECORD_KEY

# Opening fewer files takes no longer than asking for the statistics of all of them.
_ASKED_FROM = 16


@dataclass(frozen=True, slots=True, eq=False)
class _Sought:
    """Distinct keys of some rows, hashed; the same for all slices that they are looked for in."""

    distinct: DistinctKeys
    wanted: WantedKeys = field(repr=False)


def locate_in_files(
    state: Snapshot,
    rows: KeyedRows,
    executor: Executor,
    *,
    is_global: bool,
    narrowing: Narrowing = any_key,
) -> Matches:
    """Matches by the keys in files: those of a row's own partition, or of all partitions."""
    if not len(rows):
        return no_matches()
    if is_global:
        slices = latest_file_slices(state, None)
        everything = _sought(rows, np.arange(len(rows)))
        asked = [everything] * len(slices)
    else:
        sought = {path: _sought(rows, places) for path, places in rows_by_partition(rows).items()}
        slices = latest_file_slices(state, sorted(sought))
        asked = [sought[slice_.partition] for slice_ in slices]
    may_hold = _may_hold(state, slices, asked)
    slices = tuple(one for one, may in zip(slices, may_hold, strict=True) if may)
    asked = [one for one, may in zip(asked, may_hold, strict=True) if may]
    keys = SliceKeys(state.storage, key_columns(state.config), narrowing, state.closed_logs)
    # With fewer slices than workers, several workers share a slice.
    part_count = max(executor.workers // max(len(slices), 1), 1)
    searches = [
        Search(slice_, one.wanted, part, part_count)
        for slice_, one in zip(slices, asked, strict=True)
        for part in range(part_count)
    ]
    found = list(executor.map(keys.find, searches))
    rows_found = [
        one.distinct.rows_of(one.wanted.united(found[at * part_count :][:part_count]))
        for at, one in enumerate(asked)
    ]
    return matches_by_slice(rows_found, slices)


def _may_hold(state: Snapshot, slices: Sequence[FileSlice], asked: Sequence[_Sought]) -> list[bool]:
    """Which slices have a wanted key between their smallest and their largest one.

    A key that only a delete in a log names is in no file; it need not be found.
    """
    has_ranges = state.config.has_metadata(COLUMN_STATS) and state.config.has_meta_fields
    if len(slices) < _ASKED_FROM or not has_ranges:
        return [True] * len(slices)
    partitions = sorted({slice_.partition for slice_ in slices})
    ranges = column_ranges(state.metadata.partition(COLUMN_STATS), [RECORD_KEY], partitions)
    ordered = {id(one): _ordered(one.distinct.keys) for one in asked}
    return [
        _is_between(ordered[id(one)], range_of_slice(slice_, ranges, RECORD_KEY))
        for slice_, one in zip(slices, asked, strict=True)
    ]


def _ordered(keys: pa.Array) -> list[str]:
    # By their bytes, which is the order of Python's texts, too.
    ordered: list[str] = keys.take(pc.sort_indices(keys)).to_pylist()
    return ordered


def _is_between(ordered: Sequence[str], range_: ColumnRange | None) -> bool:
    bounds = None if range_ is None else range_.bounds(pa.string())
    if bounds is None:
        return True
    place = bisect_left(ordered, bounds[0].as_py())
    return place < len(ordered) and ordered[place] <= bounds[1].as_py()


def _sought(rows: KeyedRows, places: Places) -> _Sought:
    distinct = distinct_keys(rows.keys, places)
    return _Sought(distinct, WantedKeys(distinct.keys, distinct.hashes))
