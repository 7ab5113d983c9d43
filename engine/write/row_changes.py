"""Row changes: deletes, updates and merges that follow from what the table holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.plan_query import Query, plan_query
from lakewarden.engine.read.predicate import Filter
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.key_scheme import key_scheme
from lakewarden.engine.table.schema import RECORD_KEY
from lakewarden.engine.write.request import Incoming

# What a column becomes: a value for all rows, or an expression over the row's columns.
Values: TypeAlias = Mapping[str, object]
OnMatch: TypeAlias = Literal["update", "delete", "ignore"] | Values
OnNoMatch: TypeAlias = Literal["insert", "ignore"]


@dataclass(frozen=True, slots=True)
class DeleteKeys:
    """Rows with the given record keys, wherever they are."""

    keys: tuple[str, ...]

    def __call__(self, state: Snapshot) -> Incoming:
        if len(state.config.key_fields) != 1:
            raise InvalidRequest(
                "composite_keys",
                what="Rows of this table can't be deleted by a list of keys.",
                why=f"Keys are made of {', '.join(state.config.key_fields)}.",
                now="Pass a table or dictionaries with these columns.",
            )
        field = state.schema().columns.field(state.config.key_fields[0])
        keys = pa.table({field.name: pa.array(self.keys, pa.string())})
        return Incoming(_changed_type(keys, field))


@dataclass(frozen=True, slots=True)
class DeleteWhere:
    """The keys of all rows that a filter keeps."""

    filter: Filter
    executor: Executor

    def __call__(self, state: Snapshot) -> Incoming:
        config = state.config
        partitions = [field.name for field in config.partitions.fields]
        names = dict.fromkeys(name.partition(".")[0] for name in (*config.key_fields, *partitions))
        return Incoming(_read(state, Query(list(names), self.filter), self.executor))


@dataclass(frozen=True, slots=True)
class UpdateWhere:
    """All rows that a filter keeps, with some columns changed."""

    filter: Filter
    values: Values
    executor: Executor

    def __call__(self, state: Snapshot) -> Incoming:
        names = state.schema().columns.names
        _check_values(self.values, names, state.config)
        rows = _read(state, Query(names, self.filter), self.executor)
        return Incoming(_changed(rows, rows, self.values))


@dataclass(frozen=True, slots=True, eq=False)
class Merge:
    """Rows of a source, treated by whether the table has their keys."""

    source: pa.Table
    on_match: OnMatch
    on_no_match: OnNoMatch
    executor: Executor

    def __call__(self, state: Snapshot) -> Incoming:
        names = state.schema().columns.names
        keys = key_scheme(state.config).keys(self.source.combine_chunks())
        _refuse_repeated(keys)
        existing = _read(
            state, Query([RECORD_KEY, *names], pc.field(RECORD_KEY).isin(keys)), self.executor
        )
        known = existing.column(RECORD_KEY).combine_chunks()
        matched = np.asarray(pc.is_in(keys, value_set=known))
        parts = [self._matched(existing, known, keys, matched)]
        if self.on_no_match == "insert":
            parts.append((self.source.filter(pa.array(~matched)), False))
        tables = [table for table, _ in parts]
        deleted = np.repeat([is_delete for _, is_delete in parts], [len(table) for table in tables])
        rows = pa.concat_tables(tables, promote_options="permissive")
        return Incoming(rows, deleted.astype(bool))

    def _matched(
        self, existing: pa.Table, known: pa.Array, keys: pa.Array, matched: np.ndarray
    ) -> tuple[pa.Table, bool]:
        mine = self.source.filter(pa.array(matched))
        match self.on_match:
            case "update":
                return self._completed(mine, existing, known, keys), False
            case "delete":
                return self._completed(mine, existing, known, keys), True
            case "ignore":
                return mine.slice(0, 0), False
            case values:
                old = existing.drop_columns([RECORD_KEY])
                theirs = self.source.take(pc.index_in(known, value_set=keys))
                return _changed(old, _side_by_side(old, theirs), values), False

    def _completed(
        self, mine: pa.Table, existing: pa.Table, known: pa.Array, keys: pa.Array
    ) -> pa.Table:
        """The source's rows, with the table's values in columns that the source lacks."""
        lacking = [
            name
            for name in existing.column_names
            if name not in mine.column_names and name != RECORD_KEY
        ]
        if not lacking:
            return mine
        order = pc.index_in(keys.filter(pc.is_in(keys, value_set=known)), value_set=known)
        for name in lacking:
            mine = mine.append_column(
                existing.schema.field(name), existing.column(name).take(order)
            )
        return mine


def _read(state: Snapshot, query: Query, executor: Executor) -> pa.Table:
    return plan_query(state, query).table(state.storage, executor)


def _side_by_side(old: pa.Table, theirs: pa.Table) -> pa.Table:
    """Old rows with the source's columns beside them, as `source.<name>`."""
    for name in theirs.column_names:
        old = old.append_column(f"source.{name}", theirs.column(name))
    return old


def _changed(rows: pa.Table, context: pa.Table, values: Values) -> pa.Table:
    """The rows with columns replaced by values, or by expressions over the context's columns."""
    for name, value in values.items():
        place = rows.schema.get_field_index(name)
        field = rows.schema.field(place)
        rows = rows.set_column(place, field, _column(context, name, value, field.type))
    return rows


def _column(context: pa.Table, name: str, value: object, type_: pa.DataType) -> pa.ChunkedArray:
    try:
        if isinstance(value, pc.Expression):
            made = ds.dataset(context).to_table(columns={name: value}).column(name)
            return made.cast(type_)
        return pa.chunked_array([pa.repeat(pa.scalar(value, type_), len(context))])
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InvalidRequest(
            "bad_value",
            what=f"Column {name} can't become {value!s:.100}.",
            why=str(error).partition("\n")[0],
            now=f"Pass a value or an expression of type {type_}.",
            column=name,
        ) from None


def _changed_type(keys: pa.Table, field: pa.Field) -> pa.Table:
    try:
        return keys.cast(pa.schema([field]))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidRequest(
            "bad_keys",
            what=f"Some keys are no values of the key column {field.name}, a {field.type}.",
            why=str(error).partition("\n")[0],
            now="Pass keys as they stand in the column.",
        ) from None


def _check_values(values: Values, names: Sequence[str], config: TableConfig) -> None:
    unknown = [name for name in values if name not in names]
    fixed = [name for name in values if name in config.key_fields]
    if unknown or fixed or not values:
        problem = (
            f"There is no column {unknown[0]!r}."
            if unknown
            else f"{fixed[0]!r} is a key column."
            if fixed
            else "No column is named."
        )
        raise InvalidRequest(
            "bad_update",
            what=f"These values can't be set. {problem}",
            why="An update gives other columns of existing rows new values; keys stay.",
            now="Delete the rows and insert others to give them new keys.",
        )


def _refuse_repeated(keys: pa.Array) -> None:
    if len(keys) != len(keys.unique()):
        raise InvalidRequest(
            "repeated_source_keys",
            what="Some rows of the merge have the same key.",
            why="Which of them counts would be a matter of chance.",
            now="Leave one row for each key.",
        )
