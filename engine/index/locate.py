"""Locating: finding the file groups that have the keys of a write, by the table's index."""

from dataclasses import replace

import numpy as np

from lakewarden.engine.index.bloom import possible_by_footer
from lakewarden.engine.index.bucket import locate_in_buckets
from lakewarden.engine.index.kinds import IndexChoice, IndexKind
from lakewarden.engine.index.matches import Matches, are_elsewhere, joined_matches
from lakewarden.engine.index.record import locate_in_record_index
from lakewarden.engine.index.simple import locate_in_files
from lakewarden.engine.index.slice_keys import any_key
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows


def locate(state: Snapshot, rows: KeyedRows, index: IndexChoice, executor: Executor) -> Matches:
    """Where the keys of rows already are.

    Global indexes look into all partitions, unless they are kept to the one that a row belongs to;
    the others look into that one.
    """
    match index.kind:
        case IndexKind.BUCKET:
            assert index.buckets is not None
            return locate_in_buckets(state, rows, index.buckets)
        case IndexKind.RECORD_INDEX | IndexKind.GLOBAL_RECORD_INDEX:
            found = locate_in_record_index(state, rows, executor, is_global=index.kind.is_global)
            is_kept = index.kind.is_global and not index.is_global
            return _within_partitions(state, rows, found, executor) if is_kept else found
        case IndexKind.BLOOM | IndexKind.GLOBAL_BLOOM:
            narrowing = possible_by_footer
        case _:
            narrowing = any_key
    return locate_in_files(state, rows, executor, is_global=index.is_global, narrowing=narrowing)


def _within_partitions(
    state: Snapshot, rows: KeyedRows, found: Matches, executor: Executor
) -> Matches:
    """Matches in the partitions of rows; the files tell of keys that the index has elsewhere.

    A record index knows one place of a key, and plain inserts may have put it into two.
    """
    elsewhere = are_elsewhere(rows, found)
    if not elsewhere.any():
        return found
    at = np.unique(found.rows[elsewhere])
    here = locate_in_files(state, rows.take(at), executor, is_global=False)
    return joined_matches(found.only(~elsewhere), replace(here, rows=at[here.rows]))
