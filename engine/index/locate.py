"""Locating: finding the file groups that have the keys of a write, by the table's index."""

from lakewarden.engine.index.bloom import possible_by_footer
from lakewarden.engine.index.bucket import locate_in_buckets
from lakewarden.engine.index.kinds import IndexChoice, IndexKind
from lakewarden.engine.index.matches import Matches
from lakewarden.engine.index.record import locate_in_record_index
from lakewarden.engine.index.simple import locate_in_files
from lakewarden.engine.index.slice_keys import any_key
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.keyed_rows import KeyedRows


def locate(state: Snapshot, rows: KeyedRows, index: IndexChoice, executor: Executor) -> Matches:
    """Where the keys of rows already are.

    Global indexes look into all partitions, the others into the one that a row belongs to.
    """
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
