"""Looking for keys in the files themselves, which needs no index and can't be out of date."""

from dataclasses import dataclass, field

import numpy as np

from lakewarden.engine.index.incoming import DistinctKeys, Places, distinct_keys, rows_by_partition
from lakewarden.engine.index.key_file import key_columns
from lakewarden.engine.index.latest_slices import latest_file_slices
from lakewarden.engine.index.matches import Matches, matches_by_slice, no_matches
from lakewarden.engine.index.slice_keys import Narrowing, Search, SliceKeys, WantedKeys, any_key
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows


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
    keys = SliceKeys(state.storage, key_columns(state.config), narrowing)
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


def _sought(rows: KeyedRows, places: Places) -> _Sought:
    distinct = distinct_keys(rows.keys, places)
    return _Sought(distinct, WantedKeys(distinct.keys, distinct.hashes))
