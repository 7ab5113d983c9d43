"""Operations: the writes that the front door offers, each as a request.

Plain rows: dictionaries, whose numbers have no width of their own.

Python has one kind of whole number and one of fractions. Those that fit take the type of the
table's column; taken for the widest type, they would widen the column of everybody.

Sources: whatever holds rows, as an Arrow table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeGuard, cast, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.formats.widening import widen
from lakewarden.engine.index.kinds import IndexChoice, IndexKind
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.metadata.reading.definitions import index_name, load_definitions
from lakewarden.engine.metadata.reading.table import (
    EXPRESSION_INDEX_PREFIX,
    SECONDARY_INDEX_PREFIX,
)
from lakewarden.engine.read.merge.predicate import Filter
from lakewarden.engine.read.query.plan_query import Query, plan_query
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.alteration import Alteration, ColumnChange, unsupported_change
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.write.distributed_rows import DistributedRows
from lakewarden.engine.write.request import ChosenPartitions, Incoming, Replacement, WriteRequest
from lakewarden.engine.write.row_changes import (
    DeleteKeys,
    DeleteWhere,
    Merge,
    OnMatch,
    OnNoMatch,
    UpdateWhere,
    Values,
)
from lakewarden.engine.write.rows.exact import as_in


@dataclass(frozen=True, slots=True, eq=False)
class PlainRows:
    """Rows as dictionaries; what a row lacks is null."""

    rows: Sequence[Mapping[str, object]]

    def __call__(self, state: Snapshot) -> Incoming:
        return Incoming(self.table(state.schema().columns))

    @property
    def names(self) -> tuple[str, ...]:
        """All names that occur, in the order of their first occurrence."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row))

    def table(self, wanted: pa.Schema) -> pa.Table:
        """The rows in columns, of the wanted types as far as these take every value as it is."""
        columns = {}
        for name in self.names:
            values = [row.get(name) for row in self.rows]
            place = wanted.get_field_index(name)
            columns[name] = _column(values, wanted.field(place).type if place >= 0 else None)
        return pa.table(columns)


def _column(values: Sequence[object], wanted: pa.DataType | None) -> pa.Array:
    try:
        found = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise unreadable("list", error) from None
    if wanted is None or found.type == wanted:
        return found
    if types.is_floating(found.type) and types.is_floating(wanted):
        narrow = pa.array(values, wanted)
        # What is too large for the narrow type has become infinite.
        return narrow if pc.is_inf(narrow).equals(pc.is_inf(found)) else found
    if not _same_up_to_widths(found.type, wanted):
        return found
    try:
        return pa.array(values, wanted)
    except (pa.ArrowInvalid, OverflowError):
        return found


def _same_up_to_widths(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether two types are the same up to the widths of the whole numbers in them."""
    if types.is_integer(found) and types.is_integer(wanted):
        return True
    if types.is_list(found) and types.is_list(wanted):
        return _same_up_to_widths(found.value_type, wanted.value_type)
    if types.is_struct(found) and types.is_struct(wanted):
        inner = {field.name: field.type for field in wanted}
        return inner.keys() == {field.name for field in found} and all(
            _same_up_to_widths(field.type, inner[field.name]) for field in found
        )
    return bool(found == wanted)


def unreadable(kind: str, error: pa.ArrowException) -> InvalidRequest:
    """What Arrow says of rows that it can't put into columns."""
    return InvalidRequest(
        "unreadable_rows",
        what=f"The rows in this {kind} do not form columns.",
        why=str(error).partition("\n")[0],
        now="Give every value of a column the same type, or pass an Arrow table.",
    )


@runtime_checkable
class ArrowStream(Protocol):
    """Anything that speaks Arrow's C stream interface: pandas, polars, DuckDB, ..."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@runtime_checkable
class ArrowArray(Protocol):
    """Anything that is one Arrow record batch."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> object: ...


Rows: TypeAlias = ArrowStream | ArrowArray | Sequence[Mapping[str, object]]


# What rows may be when they come to an operation.
Given: TypeAlias = Rows | Incoming | DistributedRows


def incoming_rows(rows: Given) -> Incoming | DistributedRows | PlainRows:
    """The rows as a request has them: here, or where they are."""
    if isinstance(rows, Incoming | DistributedRows):
        return rows
    found = read_rows(rows)
    return found if isinstance(found, PlainRows) else Incoming(found)


def read_rows(rows: Rows) -> pa.Table | PlainRows:
    """The rows, without a copy where the source holds them in Arrow already."""
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, list | tuple) and all(isinstance(row, Mapping) for row in rows):
        return PlainRows(rows)
    try:
        if isinstance(rows, ArrowStream):
            return pa.RecordBatchReader.from_stream(rows).read_all()
        if isinstance(rows, ArrowArray):
            return pa.Table.from_batches([pa.record_batch(rows)])
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise unreadable(type(rows).__name__, error) from None
    raise InvalidRequest(
        "unsupported_rows",
        what=f"Lakewarden cannot read rows from a {type(rows).__name__}.",
        why="Rows come from an Arrow table or reader, a DataFrame, or a list of dictionaries.",
        now="Pass one of these.",
    )


RowsOrKeys: TypeAlias = Given | Sequence[str | int]

# Keys alone don't say in which partition they are.
_IN_ALL_PARTITIONS = IndexChoice(IndexKind.GLOBAL_SIMPLE)


def upsert(rows: Given) -> WriteRequest:
    return WriteRequest(operation=Operation.UPSERT, incoming=incoming_rows(rows))


def apply_changes(rows: pa.Table, is_delete: pa.ChunkedArray) -> WriteRequest:
    """Upserts and deletes in one write: of the rows of a key the newest counts."""
    return WriteRequest(operation=Operation.UPSERT, incoming=Incoming(rows, is_delete=is_delete))


def insert(rows: Given) -> WriteRequest:
    incoming = incoming_rows(rows)
    return WriteRequest(operation=Operation.INSERT, incoming=incoming, finds_keys=False)


def bulk_insert(rows: Given, sort: Sequence[str]) -> WriteRequest:
    return WriteRequest(
        operation=Operation.BULK_INSERT,
        incoming=incoming_rows(rows),
        finds_keys=False,
        divides=True,
        sort=tuple(sort),
    )


def delete(rows_or_keys: RowsOrKeys, config: TableConfig) -> WriteRequest:
    """Deletes by rows that hold the key columns, or by record keys alone."""
    if _are_keys(rows_or_keys):
        return WriteRequest(
            operation=Operation.DELETE,
            incoming=DeleteKeys(tuple(map(str, rows_or_keys))),
            deletes=True,
            index=_IN_ALL_PARTITIONS,
        )
    incoming = incoming_rows(cast(Given, rows_or_keys))
    partitions = {field.name.partition(".")[0] for field in config.partitions.fields}
    names = incoming.names if isinstance(incoming, PlainRows) else incoming.schema.names
    index = None if partitions <= set(names) else _IN_ALL_PARTITIONS
    return WriteRequest(operation=Operation.DELETE, incoming=incoming, deletes=True, index=index)


def delete_where(filter_: Filter, executor: Executor) -> WriteRequest:
    return WriteRequest(
        operation=Operation.DELETE,
        incoming=DeleteWhere(filter_, executor),
        deletes=True,
        within_partitions=True,
    )


def update_where(
    filter_: Filter, values: Values, executor: Executor, settings: Settings
) -> WriteRequest:
    return WriteRequest(
        operation=Operation.UPSERT,
        incoming=UpdateWhere(filter_, values, executor, settings),
        within_partitions=True,
    )


def merge(
    rows: Rows,
    on_match: OnMatch,
    on_no_match: OnNoMatch,
    executor: Executor,
    settings: Settings,
) -> WriteRequest:
    _check_choice("on_match", on_match, ("update", "delete", "ignore"))
    _check_choice("on_no_match", on_no_match, ("insert", "ignore"))
    source = read_rows(rows)

    def merging(state: Snapshot) -> Incoming:
        is_plain = isinstance(source, PlainRows)
        columns = state.schema().columns
        table = source.table(columns) if is_plain else source
        return Merge(as_in(table, columns), on_match, on_no_match, executor, settings)(state)

    return WriteRequest(operation=Operation.UPSERT, incoming=merging, within_partitions=True)


def overwrite(rows: Given) -> WriteRequest:
    return WriteRequest(
        operation=Operation.INSERT_OVERWRITE_TABLE,
        incoming=incoming_rows(rows),
        finds_keys=False,
        divides=True,
        replacement=Replacement.TABLE,
    )


def overwrite_partitions(rows: Given) -> WriteRequest:
    return WriteRequest(
        operation=Operation.INSERT_OVERWRITE,
        incoming=incoming_rows(rows),
        finds_keys=False,
        divides=True,
        replacement=Replacement.TOUCHED_PARTITIONS,
    )


def delete_partitions(
    partitions: Sequence[str], schema: pa.Schema, config: TableConfig
) -> WriteRequest:
    if isinstance(partitions, str) or not all(isinstance(path, str) for path in partitions):
        raise InvalidRequest(
            "bad_partitions",
            what="The partitions to delete must be a list of partition paths.",
            why="Partitions have the paths that `partitions()` returns.",
            now="For example: table.delete_partitions(['day=2026-11-01']).",
        )
    for path in partitions:
        _check_path(path, config)
    return delete_chosen_partitions(tuple(dict.fromkeys(partitions)), schema)


def delete_chosen_partitions(partitions: ChosenPartitions, schema: pa.Schema) -> WriteRequest:
    """Deletes of partitions that are there, or that are chosen once the write has a state."""
    return WriteRequest(
        operation=Operation.DELETE_PARTITION,
        incoming=Incoming(schema.empty_table()),
        finds_keys=False,
        divides=True,
        replacement=Replacement.NAMED_PARTITIONS,
        partitions=partitions,
    )


def alter(changes: Sequence[ColumnChange]) -> WriteRequest:
    """Change columns, with no rows: a commit of its own, as Hudi makes one."""
    alteration = Alteration(tuple(changes))

    def none(state: Snapshot) -> Incoming:
        current = state.schema()
        altered = alteration.schema(current, state.config)
        _refuse_indexed(state, alteration)
        for column, type_ in alteration.unsure(current):
            _check_values(state, column, type_)
        return Incoming(altered.columns.empty_table())

    return WriteRequest(
        operation=Operation.ALTER_SCHEMA,
        incoming=none,
        finds_keys=False,
        alteration=alteration,
    )


def _refuse_indexed(state: Snapshot, alteration: Alteration) -> None:
    """Refuse to take a column from an index of its values, or to change them."""
    kinds = (SECONDARY_INDEX_PREFIX, EXPRESSION_INDEX_PREFIX)
    indexes = [
        one
        for one in load_definitions(state.storage, state.config)
        if one.partition.startswith(kinds)
    ]
    for change in alteration.changes:
        changes = change.drops or change.new_name is not None or change.type is not None
        for index in indexes:
            if changes and not change.adds and change.column in index.columns:
                why = f"The index {index_name(index.partition)} has its values."
                raise unsupported_change(change.column, why, "Drop the index first.")


def _check_values(state: Snapshot, column: str, type_: pa.DataType) -> None:
    """Refuse a type in which some value of a column has no place: reads would fail from then on."""
    for batch in plan_query(state, Query([column])).batches(state.storage):
        try:
            widen(batch.column(0), type_)
        except pa.ArrowInvalid as error:
            reason = str(error).splitlines()[0]
            raise unsupported_change(
                column, f"{reason}.", "Add a column of the new type, and UPDATE it."
            ) from None


def _are_keys(rows: object) -> TypeGuard[Sequence[str | int]]:
    return isinstance(rows, list | tuple) and all(isinstance(key, str | int) for key in rows)


def _check_path(path: str, config: TableConfig) -> None:
    """A value is easily taken for a path; a path that can't be would silently delete nothing."""
    scheme = config.partitions
    prefixes = [f"{field.name}=" if scheme.hive_style else "" for field in scheme.fields]
    segments = path.split("/") if path else []
    enough = len(segments) >= len(prefixes) and bool(segments) == bool(prefixes)
    named = all(part.startswith(name) for part, name in zip(segments, prefixes, strict=False))
    if enough and named:
        return
    pattern = "/".join(f"{prefix}..." for prefix in prefixes)
    raise InvalidRequest(
        "bad_partitions",
        what=f"{path!r} is not a partition path of this table.",
        why=f"Its partition paths look like {pattern!r}."
        if prefixes
        else "The table has no partitions.",
        now="Use the paths that `partitions()` returns.",
        partition=path,
    )


def _check_choice(name: str, value: object, words: tuple[str, ...]) -> None:
    if value in words or (name == "on_match" and not isinstance(value, str)):
        return
    raise InvalidRequest(
        f"bad_{name}",
        what=f"{name} cannot take {value!r}.",
        why=f"It must be one of {', '.join(words)}"
        + (", or values by column." if name == "on_match" else "."),
        now=f"Pass {name}={words[0]!r}, for example.",
    )
