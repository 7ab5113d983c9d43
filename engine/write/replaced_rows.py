"""Replaced rows: what indexes of keys and values have to forget when file groups are replaced."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.metadata.entries.changes import Located, Removed, ValueChange
from lakewarden.engine.metadata.entries.row_indexes import RowIndexes, value_changes
from lakewarden.engine.metadata.reading.table import RECORD_INDEX
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.read.query.plan_query import Query, plan_query, read_spec
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows
from lakewarden.engine.table.schema import PARTITION_PATH, RECORD_KEY
from lakewarden.engine.write.plan import WritePlan


@dataclass(frozen=True, slots=True, eq=False)
class ReplacedRows:
    """The keys of some slices by partition, and their values by secondary index."""

    keys: tuple[Removed, ...] = ()
    values: tuple[ValueChange, ...] = ()


def replaced_rows(
    state: Snapshot, plan: WritePlan, rows: KeyedRows, indexes: RowIndexes, executor: Executor
) -> ReplacedRows:
    """What lives in the slices that a write of these rows replaces.

    Nothing is read without an index that has to forget it. Rows that stay though another one of
    their key goes are put again.
    """
    stays = _values_of_stays(plan.stays, rows, indexes)
    has_keys = any(one.partition == RECORD_INDEX for one in state.definitions)
    if not plan.replaced or not (has_keys or indexes.secondary):
        return ReplacedRows(values=stays)
    columns = list(dict.fromkeys((RECORD_KEY, PARTITION_PATH, *indexes.value_columns)))
    scan = plan_query(state, Query(columns=columns))
    gone = replace(scan, slices=tuple(plan.replaced), skipped=()).table(state.storage, executor)
    paths = gone.column(PARTITION_PATH)
    keys = [
        Removed(gone.filter(pc.equal(paths, path)).column(RECORD_KEY).combine_chunks(), path)
        for path in (sorted(pc.unique(paths).to_pylist()) if has_keys else ())
    ]
    return ReplacedRows(tuple(keys), value_changes(indexes.secondary, gone, None) + stays)


def rows_with_keys(state: Snapshot, slice_: FileSlice, columns: Sequence[str]) -> pa.Table:
    """The record keys and some columns of the rows that readers see in a slice."""
    return reader_with_keys(state, columns).table(slice_)


def reader_with_keys(state: Snapshot, columns: Sequence[str]) -> SliceReader:
    """A reader of slices that gives the record keys and some columns of their rows."""
    query = Query(columns=list(dict.fromkeys((RECORD_KEY, *columns))))
    return SliceReader(state.storage, read_spec(state, query, None))


def _values_of_stays(
    stays: Sequence[Located], rows: KeyedRows, indexes: RowIndexes
) -> tuple[ValueChange, ...]:
    if not stays or not indexes.secondary:
        return ()
    keys = pa.concat_arrays([one.keys for one in stays])
    chosen = pc.is_in(rows.keys, value_set=keys)
    living = rows.rows.select(indexes.value_columns).append_column(RECORD_KEY, [rows.keys])
    return value_changes(indexes.secondary, None, living.filter(chosen))
