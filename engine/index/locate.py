"""Locating: finding the file groups that have the keys of a write, by the table's index."""

from dataclasses import replace

from lakewarden.engine.index.bloom import possible_by_footer
from lakewarden.engine.index.bucket import locate_in_buckets
from lakewarden.engine.index.kinds import IndexChoice, IndexKind
from lakewarden.engine.index.matches import Matches, united
from lakewarden.engine.index.record import locate_in_record_index
from lakewarden.engine.index.simple import locate_in_files
from lakewarden.engine.index.slice_keys import any_key
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.keyed_rows import KeyedRows


def locate(state: Snapshot, rows: KeyedRows, index: IndexChoice, executor: Executor) -> Matches:
    """Where the keys of rows already are.

    Global indexes look into all partitions, the others into the one that a row belongs to. Where a
    table has buckets, a row that moves goes to that of its own partition.
    """
    if index.buckets is not None and index.kind.is_global and index.moves:
        return _with_buckets(state, rows, index, executor)
    match index.kind:
        case IndexKind.BUCKET:
            assert index.buckets is not None
            return locate_in_buckets(state, rows, index.buckets)
        case IndexKind.RECORD_INDEX | IndexKind.GLOBAL_RECORD_INDEX:
            return locate_in_record_index(state, rows, executor, is_global=index.kind.is_global)
        case IndexKind.BLOOM | IndexKind.GLOBAL_BLOOM:
            narrowing = possible_by_footer
        case _:
            narrowing = any_key
    return locate_in_files(
        state, rows, executor, is_global=index.kind.is_global, narrowing=narrowing
    )


def _with_buckets(
    state: Snapshot, rows: KeyedRows, index: IndexChoice, executor: Executor
) -> Matches:
    """The groups that have the keys, and the buckets that the rows belong to."""
    assert index.buckets is not None
    found = locate(state, rows, replace(index, buckets=None), executor)
    return united(found, locate_in_buckets(state, rows, index.buckets))
