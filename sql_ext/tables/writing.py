"""Writing: INSERT, DELETE, UPDATE and MERGE through the engine's writes.

What a statement reads of the table it writes to is read at the very moment that conflicts with
other writers are judged by, and anew if the write has to begin anew.

Changed rows: what Spark's plan of an UPDATE or MERGE says of each row, as a change set.

The plan gives each row an operation, the values it shall have, and those it was found by.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol, cast

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
from lakewarden.engine.write.request import (
    ChosenPartitions,
    Derivation,
    Incoming,
    Replacement,
    WriteRequest,
)
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
from lakewarden.sql_ext.tables.partitions import having
from lakewarden.sql_ext.tables.reading import constant, location_of
from lakewarden.sql_ext.tables.snapshots import SNAPSHOTS, HeldSnapshots
from lakewarden.sql_ext.tables.statement_options import (
    refuse_others,
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


OVERWRITES = frozenset(("insert_overwrite", "insert_overwrite_table"))
# The column, the comparison, the type and the value of what a statement names a partition by.
Conditions = Sequence[Sequence[object]]


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
    # What the statement itself says, and what its session calls the operation.
    said: Mapping[str, str]
    session_operation: str
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
        changes = change_set(_rows(self.frame(state)), state.schema().columns)
        return self._changing(state, refuses_lowered=True).incoming(changes)

    def merged(self, state: Snapshot) -> Incoming:
        """The rows of a MERGE; a source that has a new row twice adds it once, as in Hudi."""
        changes = change_set(_rows(self.frame(state)), state.schema().columns).without_equals(state)
        return self._changing(state, refuses_lowered=False).incoming(changes)

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
    refuse_others(session, table.config, table.schema)
    with SNAPSHOTS.writing() as held:
        writing = Writing(
            spark=spark,
            rows=rows,
            table=table,
            settings=table.settings(given),
            said=said,
            session_operation=session.get(OPERATION, "").lower(),
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
            return _overwrite(writing, cast(Conditions, details.get("partition", ())))
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
    # Rows whose keys are generated have no others of their key.
    has_keys = bool(writing.table.config.key_fields)
    policy = _policy(settings)
    if settings[INSERT_MODE] == "strict":
        policy = "fail"
        if operation is Operation.BULK_INSERT and has_keys:
            raise _not_strict()
    if policy == "none" or operation is Operation.UPSERT or not has_keys:
        return _insert(writing, operation)
    return _changing(writing, writing.missing if policy == "drop" else writing.added)


def _policy(settings: Settings) -> str:
    """What becomes of rows whose keys the table has."""
    return "drop" if settings[DROP_DUPLICATES] else settings[DUPLICATES]


def _not_strict() -> InvalidRequest:
    return InvalidRequest(
        "unsupported_insert",
        what="A bulk insert cannot be strict.",
        why="hoodie.sql.insert.mode=strict refuses known keys; a bulk insert looks for none.",
        now="Set hoodie.sql.insert.mode=non-strict, or hoodie.sql.bulk.insert.enable=false.",
    )


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


def _overwrite(writing: Writing, partition: Conditions) -> WriteRequest:
    """What the rows take the place of: the session's operation says it, or else the mode."""
    settings, table = writing.settings, writing.table
    named = {str(name): constant(str(type_), value) for name, _, type_, value in partition}
    is_one = len(named) == len(table.config.partitions.fields)
    said = writing.session_operation
    if said not in OVERWRITES:
        mode = "insert_overwrite" if settings[OVERWRITE_MODE] == "dynamic" else ""
        said = mode or ("" if settings[OVERWRITE_MODE] else settings[OVERWRITE_OPERATION])
    if said == "insert_overwrite_table" or not table.config.is_partitioned:
        return _replacing(writing, Replacement.TABLE)
    if named and (is_one or not said):
        # Partitions that appear meanwhile have rows of later commits.
        chosen = (_path(named, table),) if is_one else partial(having, values=named)
        return _replacing(writing, Replacement.NAMED_PARTITIONS, chosen)
    return _replacing(writing, Replacement.TOUCHED_PARTITIONS if said else Replacement.TABLE)


def _replacing(
    writing: Writing, replacement: Replacement, partitions: ChosenPartitions = ()
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


def _path(values: Mapping[str, object], table: Table) -> str:
    """The path of the partition with these values, spelled as its rows' will be."""
    columns = table.schema
    fields = [field.name for field in table.config.partitions.fields]
    row = pa.table({name: pa.array([values[name]], columns.field(name).type) for name in fields})
    return str(partition_paths(row, table.config).to_pylist()[0])


def _insert_operation(writing: Writing) -> Operation:
    """Inserts, unless the table can tell by ordering columns which row is newer."""
    settings, table = writing.settings, writing.table.config
    said = settings[INSERT_OPERATION] or _named_operation(writing)
    if not said and settings[BULK_INSERT]:
        said = "bulk_insert"
    if not said and settings[INSERT_MODE]:
        said = "upsert" if settings[INSERT_MODE] == "upsert" and table.key_fields else "insert"
    is_newer_known = bool(table.merge.ordering_fields and table.key_fields)
    # Who says what becomes of known keys wants them to be looked for, not merged.
    is_newer_known = is_newer_known and _policy(settings) == "none"
    return _INSERTS[said or ("upsert" if is_newer_known else "insert")]


def _named_operation(writing: Writing) -> str:
    """What a frame's writer or the session calls the operation; INSERT has no other ones."""
    name = writing.said.get(OPERATION, "").lower()
    if not name and writing.session_operation in _INSERTS:
        return writing.session_operation
    if name and name not in _INSERTS:
        raise InvalidRequest(
            "unsupported_insert",
            what=f"INSERT cannot carry out the operation {name}.",
            why=f"It has {', '.join(_INSERTS)}.",
            now="Use DELETE, INSERT OVERWRITE or MERGE for others.",
        )
    return name
