"""Writing: INSERT, DELETE, UPDATE and MERGE through the engine's writes.

What a statement reads of the table it writes to is read at the very moment that conflicts with
other writers are judged by, and anew if the write has to begin anew.

Changed rows: what Spark's plan of an UPDATE or MERGE says of each row, as a change set.

The plan gives each row an operation, the values it shall have, and those it was found by.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from py4j.java_gateway import JavaObject
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from lakewarden.engine.conflicts.touched_groups import ReadScope
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.index.settings import select_index
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.spark.workers.older_sparks import message_of
from lakewarden.engine.spark.workers.types import quoted
from lakewarden.engine.spark.write.incoming import fetched, incoming_frame
from lakewarden.engine.table.description import OPERATION
from lakewarden.engine.table.keygen.partition_paths import partition_paths
from lakewarden.engine.table.schema import RECORD_KEY
from lakewarden.engine.write.change_set import ChangeSet, Changing
from lakewarden.engine.write.distributed_rows import DistributedRows
from lakewarden.engine.write.request import Derivation, Incoming, Replacement, WriteRequest
from lakewarden.engine.write.row_changes import Merge
from lakewarden.engine.write.rows.exact import as_in
from lakewarden.engine.write.settings import (
    BULK_INSERT,
    DROP_DUPLICATES,
    DUPLICATES,
    INSERT_MODE,
    INSERT_OPERATION,
    OVERWRITE_MODE,
    OVERWRITE_OPERATION,
)
from lakewarden.sql_ext.tables.reading import constant, location_of
from lakewarden.sql_ext.tables.snapshots import SNAPSHOTS, HeldSnapshots
from lakewarden.sql_ext.tables.statement_options import (
    said_options,
    session_settings,
    write_options,
)
from lakewarden.table import Table

CHANGE_OPERATION = "__operation"
ORIGINAL = "__original_"
# The numbers by which Spark's rewritten plans tell what becomes of a row.
DELETE, UPDATE = 1, 2


def originals(names: Sequence[str]) -> list[str]:
    """The columns by whose old values rows were found."""
    return [name for name in names if name.startswith(ORIGINAL)]


def change_set(rows: pa.Table, columns: pa.Schema) -> ChangeSet:
    """The rows of a plan by what becomes of them."""
    operation = np.asarray(rows.column(CHANGE_OPERATION))
    is_gone, is_old = pa.array(operation == DELETE), pa.array(operation == UPDATE)
    is_added = pa.array((operation != DELETE) & (operation != UPDATE))
    found = originals(rows.column_names)
    old = rows.select(found).rename_columns([name.removeprefix(ORIGINAL) for name in found])
    new = rows.select([name for name in rows.column_names if name in columns.names])
    if RECORD_KEY in old.column_names:
        # Keys that Hudi generated are in no column of the rows; a new row gets one.
        new = new.append_column(RECORD_KEY, old.column(RECORD_KEY))
    return ChangeSet(
        gone=old.filter(is_gone),
        old=old.filter(is_old),
        new=new.filter(is_old),
        added=new.filter(is_added),
    )


_INSERTS = {
    "insert": Operation.INSERT,
    "upsert": Operation.UPSERT,
    "bulk_insert": Operation.BULK_INSERT,
}


class PlannedRows(Protocol):
    """A statement in the JVM, which knows the plan of its rows."""

    def rows(self, moment: int) -> JavaObject:
        """Its rows, with what it reads of the table itself as it was at a moment."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """A statement that writes, while it runs."""

    spark: SparkSession
    rows: PlannedRows
    table: Table
    settings: Settings
    # What the statement itself says.
    said: Mapping[str, str]
    held: HeldSnapshots

    @property
    def searched(self) -> ReadScope:
        """Where the statement has searched for the rows that it changes."""
        return ReadScope(self.held.may_hold)

    def frame(self, state: Snapshot) -> DataFrame:
        return DataFrame(self.rows.rows(self.held.hold(state)), self.spark)

    def given(self, state: Snapshot) -> Incoming | DistributedRows:
        """The rows as they are; large ones stay with Spark."""
        return self._incoming(self.frame(state), state)

    def removed(self, state: Snapshot) -> Incoming | DistributedRows:
        """The rows of a DELETE, as far as keys and partition paths are made of them."""
        frame = self.frame(state)
        names = originals(frame.columns)
        chosen = [col(quoted(name)).alias(name.removeprefix(ORIGINAL)) for name in names]
        return self._incoming(frame.select(*chosen), state)

    def updated(self, state: Snapshot) -> Incoming:
        rows = _rows(self.frame(state))
        return self._changed(rows, state, refuses_lowered=True)

    def merged(self, state: Snapshot) -> Incoming:
        return self._changed(_rows(self.frame(state)), state, refuses_lowered=False)

    def added(self, state: Snapshot) -> Incoming:
        """The rows of an INSERT that refuses keys which the table has."""
        rows = _rows(self.frame(state))
        none = rows.slice(0, 0)
        return self._changing(state, refuses_lowered=False).incoming(
            ChangeSet(gone=none, old=none, new=none, added=rows)
        )

    def missing(self, state: Snapshot) -> Incoming:
        """The rows of an INSERT that leaves out keys which the table has."""
        rows = as_in(_rows(self.frame(state)), state.schema().columns)
        return Merge(rows, "ignore", "insert", LocalExecutor(), self.settings)(state)

    def _incoming(self, frame: DataFrame, state: Snapshot) -> Incoming | DistributedRows:
        with _sparks_errors():
            return incoming_frame(frame, state.storage.location, self.settings, state.config)

    def _changed(self, rows: pa.Table, state: Snapshot, *, refuses_lowered: bool) -> Incoming:
        changing = self._changing(state, refuses_lowered=refuses_lowered)
        return changing.incoming(change_set(rows, state.schema().columns))

    def _changing(self, state: Snapshot, *, refuses_lowered: bool) -> Changing:
        return Changing(
            state=state,
            executor=LocalExecutor(),
            by_partition=not select_index(state, self.settings).kind.is_global,
            refuses_lowered=refuses_lowered,
        )


def _rows(frame: DataFrame) -> pa.Table:
    with _sparks_errors():
        return fetched(frame)


@contextmanager
def _sparks_errors() -> Iterator[None]:
    """Errors in a statement's own expressions are raised in Spark's words."""
    try:
        yield
    except PySparkException as error:
        text = message_of(error).strip().partition("\n")[0]
        raise InvalidRequest(
            "statement_failed",
            what="Spark could not compute the rows of the statement.",
            why=text,
            now="Nothing was written. Correct the statement or the rows.",
        ) from None


def write(
    spark: SparkSession,
    rows: PlannedRows,
    kind: str,
    path: str,
    options: Mapping[str, str],
    details: Mapping[str, object],
) -> None:
    """Run a statement: `kind` is what it does, `details` what only this one says."""
    said, session = said_options(path, options, details), session_settings(details)
    given = write_options(said)
    location = location_of(path, options)
    table = Table(location.uri, location.options, session=session)
    with SNAPSHOTS.writing() as held:
        writing = Writing(
            spark=spark,
            rows=rows,
            table=table,
            settings=table.settings(given),
            said=said,
            held=held,
        )
        table.write(_request(kind, writing, details), given)


def _request(kind: str, writing: Writing, details: Mapping[str, object]) -> WriteRequest:
    match kind:
        case "append":
            return _appended(writing)
        case "fill":
            return _insert(writing, Operation.BULK_INSERT)
        case "overwrite":
            return _overwrite(writing, details.get("partition"))
        case "overwrite_partitions":
            return _replacing(writing, Replacement.TOUCHED_PARTITIONS)
        case "delete":
            return WriteRequest(
                operation=Operation.DELETE,
                incoming=writing.removed,
                deletes=True,
                within_partitions=True,
                read_scope=writing.searched,
            )
        case "update":
            return _changing(writing, writing.updated)
        case _:
            return _changing(writing, writing.merged)


def _appended(writing: Writing) -> WriteRequest:
    settings = writing.settings
    operation = _insert_operation(writing)
    policy = "drop" if settings[DROP_DUPLICATES] else settings[DUPLICATES]
    if settings[INSERT_MODE] == "strict":
        policy = "fail"
    # Rows whose keys are generated have no others of their key.
    has_keys = bool(writing.table.config.key_fields)
    if policy == "none" or operation is Operation.UPSERT or not has_keys:
        return _insert(writing, operation)
    return _changing(writing, writing.missing if policy == "drop" else writing.added)


def _insert(writing: Writing, operation: Operation) -> WriteRequest:
    return WriteRequest(
        operation=operation,
        incoming=writing.given,
        finds_keys=operation is Operation.UPSERT,
        divides=operation is Operation.BULK_INSERT,
    )


def _changing(writing: Writing, derivation: Derivation) -> WriteRequest:
    return WriteRequest(
        operation=Operation.UPSERT,
        incoming=derivation,
        within_partitions=True,
        read_scope=writing.searched,
    )


def _overwrite(writing: Writing, partition: object) -> WriteRequest:
    if partition is None:
        said = (writing.settings[OVERWRITE_MODE], writing.settings[OVERWRITE_OPERATION])
        of_rows = said[0] == "dynamic" or (said[0] == "" and said[1] == "insert_overwrite")
        touched = of_rows and writing.table.config.is_partitioned
        return _replacing(writing, Replacement.TOUCHED_PARTITIONS if touched else Replacement.TABLE)
    path = _path(partition, writing.table)
    return _replacing(writing, Replacement.NAMED_PARTITIONS, (path,))


def _replacing(
    writing: Writing, replacement: Replacement, partitions: tuple[str, ...] = ()
) -> WriteRequest:
    whole = replacement is Replacement.TABLE
    return WriteRequest(
        operation=Operation.INSERT_OVERWRITE_TABLE if whole else Operation.INSERT_OVERWRITE,
        incoming=writing.given,
        finds_keys=False,
        divides=True,
        replacement=replacement,
        partitions=partitions,
    )


def _path(conditions: object, table: Table) -> str:
    """The path of the partition that a statement names, spelled as its rows' will be."""
    assert isinstance(conditions, list)
    values = {str(name): constant(str(type_), value) for name, _, type_, value in conditions}
    fields = [field.name for field in table.config.partitions.fields]
    if sorted(values) != sorted(fields):
        raise InvalidRequest(
            "unsupported_overwrite",
            what="The statement would replace rows of several partitions.",
            why=f"The table's partition columns: {', '.join(fields) or 'none'}.",
            now=(
                "Name all partition columns, or set "
                "spark.sql.sources.partitionOverwriteMode=dynamic."
            ),
        )
    columns = table.schema
    row = pa.table({name: pa.array([values[name]], columns.field(name).type) for name in fields})
    return str(partition_paths(row, table.config).to_pylist()[0])


def _insert_operation(writing: Writing) -> Operation:
    """As in Hudi: inserts, unless the table can tell by ordering columns which row is newer."""
    settings, table = writing.settings, writing.table.config
    said = settings[INSERT_OPERATION] or _named_operation(writing)
    if not said and settings[BULK_INSERT]:
        said = "bulk_insert"
    if not said and settings[INSERT_MODE]:
        said = "upsert" if settings[INSERT_MODE] == "upsert" and table.key_fields else "insert"
    is_newer_known = bool(table.merge.ordering_fields and table.key_fields)
    return _INSERTS[said or ("upsert" if is_newer_known else "insert")]


def _named_operation(writing: Writing) -> str:
    """What a frame's writer calls its operation; INSERT has no other ones."""
    name = writing.said.get(OPERATION, "").lower()
    if name and name not in _INSERTS:
        raise InvalidRequest(
            "unsupported_insert",
            what=f"INSERT cannot carry out the operation {name}.",
            why=f"It has {', '.join(_INSERTS)}.",
            now="Use DELETE, INSERT OVERWRITE or MERGE for others.",
        )
    return name
