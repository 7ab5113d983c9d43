"""Changed rows: what UPDATE and MERGE do to a table, as rows to write and rows to delete.

Spark's plan gives each row an operation, the values it shall have, and those it was found by. What
a table that knows its rows by their keys can't do is refused here, before anything is written.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.plan_query import Query, plan_query
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.schema import PARTITION_PATH, RECORD_KEY
from lakewarden.engine.write.prepare import keyed_rows
from lakewarden.engine.write.request import Incoming

OPERATION = "__operation"
ORIGINAL = "__original_"
# The numbers by which Spark's rewritten plans tell what becomes of a row.
DELETE, UPDATE = 1, 2


@dataclass(frozen=True, slots=True)
class Places:
    """The key and partition path of each of some rows; a global index knows keys alone."""

    keys: pa.StringArray
    partitions: pa.StringArray

    def names(self, *, by_partition: bool) -> pa.Array:
        """One text for each row, which no other place has."""
        if not by_partition:
            return self.keys
        return pc.binary_join_element_wise(self.partitions, self.keys, "\n")


def changed_rows(
    rows: pa.Table, state: Snapshot, executor: Executor, *, by_partition: bool
) -> Incoming:
    """The rows of a change as one write: what is to go, and what is to be there."""
    operation = np.asarray(rows.column(OPERATION))
    names = [name for name in rows.column_names if name in state.schema().columns.names]
    is_written, is_update = operation != DELETE, operation == UPDATE
    written = rows.filter(pa.array(is_written)).select(names)
    new = _places(written, state)
    gone = _originals(rows).filter(pa.array(~is_written))
    moved = np.zeros(len(written), dtype=bool)
    if is_update.any():
        found = _places(_originals(rows.filter(pa.array(is_update))), state)
        moved[is_update[is_written]] = _moved(new, found, is_update[is_written])
        if by_partition:
            left = _originals(rows.filter(pa.array(is_update))).filter(
                pa.array(moved[is_update[is_written]])
            )
            gone = pa.concat_tables([gone, left])
    _refuse_repeated(new.names(by_partition=by_partition))
    arriving = ~is_update[is_written] | moved if by_partition else ~is_update[is_written]
    _refuse_known(new, arriving, state, executor, by_partition=by_partition)
    both = pa.concat_tables([gone.select(_own(gone, names)), written], promote_options="permissive")
    return Incoming(both, np.arange(len(both)) < len(gone))


def _originals(rows: pa.Table) -> pa.Table:
    """The columns by whose old values rows were found, under their own names."""
    names = [name for name in rows.column_names if name.startswith(ORIGINAL)]
    return rows.select(names).rename_columns([name.removeprefix(ORIGINAL) for name in names])


def _own(rows: pa.Table, names: Sequence[str]) -> list[str]:
    return [name for name in rows.column_names if name in names]


def _places(rows: pa.Table, state: Snapshot) -> Places:
    keyed = keyed_rows(rows, state.config, state.schema(), deletes=True)
    return Places(keyed.keys, keyed.partitions.cast(pa.string()))


def _moved(new: Places, old: Places, is_update: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which of the updated rows leave their partition; their keys have to stay."""
    chosen = pa.array(is_update)
    if not new.keys.filter(chosen).equals(old.keys):
        raise InvalidRequest(
            "key_changed",
            what="The statement gives rows another key.",
            why="A table knows its rows by their keys; a row with another one is another row.",
            now="Delete the rows and insert others.",
        )
    return np.asarray(pc.not_equal(new.partitions.filter(chosen), old.partitions))


def _refuse_repeated(names: pa.Array) -> None:
    if len(names) != pc.count_distinct(names).as_py():
        raise InvalidRequest(
            "repeated_keys",
            what="The statement writes two rows of the same key.",
            why="The table has a key once, so that one of the rows would be lost.",
            now="Leave one row of each key in the source.",
        )


def _refuse_known(
    new: Places,
    arriving: npt.NDArray[np.bool_],
    state: Snapshot,
    executor: Executor,
    *,
    by_partition: bool,
) -> None:
    """Refuse rows that arrive where the table has a row of their key: that one would be lost."""
    if not arriving.any():
        return
    chosen = pa.array(arriving)
    keys = new.keys.filter(chosen)
    filter_ = pc.field(RECORD_KEY).isin(keys)
    scan = plan_query(state, Query([RECORD_KEY, PARTITION_PATH], filter_))
    known = scan.table(state.storage, executor).combine_chunks()
    there = Places(known.column(RECORD_KEY), known.column(PARTITION_PATH))
    there_names = there.names(by_partition=by_partition)
    if isinstance(there_names, pa.ChunkedArray):
        there_names = there_names.combine_chunks()
    names = Places(keys, new.partitions.filter(chosen)).names(by_partition=by_partition)
    if pc.any(pc.is_in(names, value_set=there_names)).as_py():
        raise InvalidRequest(
            "key_exists",
            what="The statement inserts a row whose key the table has already.",
            why="The row that is there would be lost.",
            now="Let the condition of the MERGE compare the key columns, and nothing else.",
        )


def refuse_lowered(rows: pa.Table, state: Snapshot) -> None:
    """Refuse an UPDATE to an older ordering value: merging would keep the row as it was."""
    old = _originals(rows)
    is_lower = np.zeros(len(rows), dtype=bool)
    is_equal = np.ones(len(rows), dtype=bool)
    for name in state.config.merge.ordering_fields:
        new_values, old_values = rows.column(name), old.column(name)
        is_less = _true(pc.less(new_values, old_values))
        was_lost = _true(pc.and_(pc.is_null(new_values), pc.is_valid(old_values)))
        is_lower |= is_equal & (is_less | was_lost)
        is_equal &= _true(pc.equal(new_values, old_values))
    if is_lower.any():
        fields = ", ".join(state.config.merge.ordering_fields)
        raise InvalidRequest(
            "ordering_lowered",
            what="The UPDATE gives rows an older ordering value than they have.",
            why="The table keeps the row with the newest one, so that nothing would change.",
            now=f"Raise {fields}, or leave them as they are.",
        )


def _true(answers: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Where the answer is yes, neither no nor unknown."""
    return np.asarray(pc.fill_null(answers, False))
