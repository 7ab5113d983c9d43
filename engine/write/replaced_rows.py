"""Replaced rows: what indexes of keys and values have to forget when file groups are replaced.

Second homes: a key in another partition, where the record index can tell of one place only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.index.kinds import KeyScope
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.metadata.entries.changes import Located, Removed, ValueChange
from lakewarden.engine.metadata.entries.row_indexes import (
    RowIndexes,
    row_indexes,
    unkept_index,
    value_changes,
)
from lakewarden.engine.metadata.reading.record_index import locate_many
from lakewarden.engine.metadata.reading.table import RECORD_INDEX
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.read.query.plan_query import Query, plan_query, read_spec
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.table.schema import PARTITION_PATH, RECORD_KEY, TableSchema
from lakewarden.engine.write.files.spec import WrittenFile
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


# By what a key stands for one row in: why it is refused, and what to do.
_REFUSALS = {
    KeyScope.PARTITION: (
        "The table's record index has one location per key, but its writes look for keys within"
        " partitions.",
        "Build the index with isPartitioned=true, or call set_index with GLOBAL_SIMPLE.",
    ),
    KeyScope.TABLE: (
        "A key is one row of the whole table, but an overwrite of partitions does not look for keys"
        " in the others.",
        "Upsert the row, or delete it in the other partition first.",
    ),
}


def refuse_second_homes(
    state: Snapshot,
    files: Sequence[WrittenFile],
    index_removals: Sequence[Removed],
    executor: Executor,
    scope: KeyScope,
) -> None:
    """Refuse keys that live in another partition already, or arrive in two at once.

    Readers that trust the index would miss one of the rows. What a write removes makes room.
    """
    left = [Removed(file.left, file.key.partition) for file in files]
    arrived = [Located(file.arrived, file.key) for file in files if len(file.arrived)]
    parts = [one.keys.cast(pa.string()) for one in arrived]
    keys = pa.concat_arrays([pa.array([], pa.string()), *parts])
    if not len(keys):
        return
    distinct = keys.unique()
    if len(distinct) < len(keys):
        homes: dict[str, set[str]] = {}
        for one in arrived:
            for key in one.keys.to_pylist():
                homes.setdefault(key, set()).add(one.home.partition)
        _refuse(next((key for key, some in homes.items() if len(some) > 1), None), scope)
    found = locate_many(state.metadata.record_index(), distinct, executor)
    for partition in sorted({home.partition for home in found.homes}):
        is_there = np.array([home.partition == partition for home in found.homes])[found.at]
        there = found.keys.filter(pa.array(is_there))
        for gone in (*left, *index_removals):
            if gone.partition == partition:
                there = there.filter(pc.invert(pc.is_in(there, value_set=gone.keys)))
        for one in arrived:
            if one.home.partition != partition:
                second = one.keys.filter(pc.is_in(one.keys, value_set=there))
                _refuse(second[0].as_py() if len(second) else None, scope)


def kept_indexes(
    state: Snapshot, schema: TableSchema, settings: Settings, scope: KeyScope
) -> RowIndexes:
    """The indexes of rows; refused is one of values where a key may be in several partitions.

    Its entries name a key and no partition: with one of two equal rows the entry of both would go.
    """
    indexes = row_indexes(state.definitions, schema.columns, settings)
    if not indexes.secondary or not state.config.is_partitioned or scope is KeyScope.TABLE:
        return indexes
    defined = {one.partition: one for one in state.definitions}
    of_keys = defined.get(RECORD_INDEX)
    if of_keys is None or of_keys.is_partitioned:
        why = "It names rows by their keys alone, and here a key is one row in each partition."
        raise unkept_index(defined[indexes.secondary[0].partition], why)
    return indexes


def _refuse(key: str | None, scope: KeyScope) -> None:
    if key is None:
        return
    why, now = _REFUSALS[scope]
    raise InvalidRequest(
        "key_in_other_partition",
        what=f"The write would put the key {key!r} in two partitions.",
        why=why,
        now=now,
        key=key,
    )
