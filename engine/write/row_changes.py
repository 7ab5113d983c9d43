"""Row changes: deletes, updates and merges that follow from what the table holds.

Newest rows: a source of changes with one row for each row of the table, by ordering values.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lakewarden.engine.conflicts.touched_groups import Change, ReadScope
from lakewarden.engine.index.settings import select_index
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.read.merge.entries import ordering_values
from lakewarden.engine.read.merge.predicate import Filter
from lakewarden.engine.read.query.plan_query import Query, plan_query
from lakewarden.engine.read.query.prune import may_hold_rows
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.schema import PARTITION_PATH, RECORD_KEY
from lakewarden.engine.write.change_set import ChangeSet, Changing, repeated_keys
from lakewarden.engine.write.request import Effect, Findings, Incoming
from lakewarden.engine.write.rows.places import Places, keys_only, places_of
from lakewarden.engine.write.rows.prepare import fitted, has_partition


def newest_of_each(
    source: pa.Table, state: Snapshot, *, by_partition: bool
) -> tuple[pa.Table, Places]:
    """The newest source row of each key, and their places; refused where none is the newest."""
    places = places_of(source, state)
    is_repeated = places.are_repeated(by_partition=by_partition)
    if not is_repeated.any():
        return source, places
    rules = state.config.merge
    if not rules.ordering_fields or not set(rules.ordering_names) <= set(source.column_names):
        raise repeated_keys(places.only(is_repeated), "The rows")
    columns = pa.schema([state.schema().columns.field(name) for name in rules.ordering_names])
    ranks = ordering_values(rules.ordering(fitted(source, columns)), len(source)).ranks()
    names = places.names(by_partition=by_partition)
    codes = names.dictionary_encode().indices.to_numpy()
    newest = np.full(len(source), -1)
    np.maximum.at(newest, codes, ranks)
    is_newest = ranks == newest[codes]
    kept = places.only(is_newest)
    still = kept.are_repeated(by_partition=by_partition)
    if still.any():
        raise repeated_keys(kept.only(still), "The rows")
    return source.filter(pa.array(is_newest)), kept


# What a column becomes: a value for all rows, or an expression over the row's columns.
Values: TypeAlias = Mapping[str, object]
OnMatch: TypeAlias = Literal["update", "delete", "ignore"] | Values
OnNoMatch: TypeAlias = Literal["insert", "ignore"]


@dataclass(frozen=True, slots=True)
class DeleteKeys:
    """Rows with the given record keys, wherever they are."""

    keys: tuple[str, ...]

    def __call__(self, state: Snapshot) -> Incoming:
        if not state.config.key_fields:
            return Incoming(pa.table({RECORD_KEY: pa.array(self.keys, pa.string())}))
        if len(state.config.key_fields) != 1:
            raise InvalidRequest(
                "composite_keys",
                what="A list of values does not identify rows of this table.",
                why=f"Its keys have the columns {', '.join(state.config.key_fields)}.",
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
        names = dict.fromkeys(name.partition(".")[0] for name in (*config.identifying, *partitions))
        rows, look = _searched(state, Query(list(names), self.filter), self.executor)
        return Incoming(rows, effect=Effect(deleted=len(rows)), findings=Findings((look,)))


@dataclass(frozen=True, slots=True)
class UpdateWhere:
    """All rows that a filter keeps, with some columns changed."""

    filter: Filter
    values: Values
    executor: Executor
    settings: Settings

    def __call__(self, state: Snapshot) -> Incoming:
        names = state.schema().columns.names
        _check_values(self.values, names, state.config)
        known = () if state.config.key_fields else (RECORD_KEY,)
        old, look = _searched(state, Query([*known, *names], self.filter), self.executor)
        none = old.slice(0, 0)
        changes = ChangeSet(none, old, _changed(old, old, self.values), none)
        changing = _changing(state, self.executor, self.settings, refuses_lowered=True)
        return replace(changing.incoming(changes), findings=Findings((look,)))


@dataclass(frozen=True, slots=True, eq=False)
class Merge:
    """Rows of a source, treated by whether the table has their keys.

    A source that names the partition columns means the row of its key there, if the table may have
    the key in several partitions; any other one means all rows of its keys.
    """

    source: pa.Table
    on_match: OnMatch
    on_no_match: OnNoMatch
    executor: Executor
    settings: Settings

    def __call__(self, state: Snapshot) -> Incoming:
        changing = _changing(state, self.executor, self.settings, refuses_lowered=False)
        names = state.schema().columns.names
        by_partition = changing.by_partition and has_partition(
            set(self.source.column_names), state.config
        )
        source, places = newest_of_each(self.source, state, by_partition=by_partition)
        query = Query([RECORD_KEY, PARTITION_PATH, *names], pc.field(RECORD_KEY).isin(places.keys))
        existing = _read(state, query, self.executor)
        known = Places.stored(existing)
        wanted = places.names(by_partition=by_partition)
        found = pc.index_in(known.names(by_partition=by_partition), value_set=wanted)
        matched = existing.select(names).filter(found.is_valid())
        theirs = source.take(found.drop_null())
        is_met = np.zeros(len(source), dtype=bool)
        is_met[found.drop_null().to_numpy()] = True
        added = source.filter(pa.array(~is_met if self.on_no_match == "insert" else is_met & False))
        changes = self._changes(matched, theirs, added)
        incoming = changing.incoming(changes, known)
        if self.on_no_match == "ignore":
            absent = keys_only(places.only(~is_met))
            return replace(incoming, findings=Findings((), absent, not by_partition))
        is_left = self.on_match == "ignore" or len(incoming.rows) < len(changes.new) + len(added)
        partitions = known.partitions.filter(found.is_valid()) if is_left else []
        return replace(incoming, findings=_unless_deleted(partitions))

    def _changes(self, matched: pa.Table, theirs: pa.Table, added: pa.Table) -> ChangeSet:
        none = matched.slice(0, 0)
        match self.on_match:
            case "update":
                return ChangeSet(none, matched, _completed(theirs, matched), added)
            case "delete":
                return ChangeSet(matched, none, none, added)
            case "ignore":
                return ChangeSet(none, none, none, added)
            case values:
                new = _changed(matched, _side_by_side(matched, theirs), values)
                return ChangeSet(none, matched, new, added)


def _changing(
    state: Snapshot, executor: Executor, settings: Settings, *, refuses_lowered: bool
) -> Changing:
    return Changing(
        state=state,
        executor=executor,
        by_partition=not select_index(state, settings).kind.is_global,
        refuses_lowered=refuses_lowered,
    )


def _completed(theirs: pa.Table, matched: pa.Table) -> pa.Table:
    """The source's rows, with the table's values in columns that the source lacks."""
    for field in matched.schema:
        if field.name not in theirs.column_names:
            theirs = theirs.append_column(field, matched.column(field.name))
    return theirs


def _unless_deleted(partitions: Iterable[pa.StringScalar]) -> Findings:
    """Of rows that are there and stay as they are: without them, others would come."""
    paths = frozenset(path.as_py() for path in partitions)
    return Findings((ReadScope(paths.__contains__, Change.ROWS_TAKEN),) if paths else ())


def _searched(state: Snapshot, query: Query, executor: Executor) -> tuple[pa.Table, ReadScope]:
    """The rows of a query, and where they were searched for."""
    scan = plan_query(state, query)
    return scan.table(state.storage, executor), ReadScope(partial(may_hold_rows, scan.spec))


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
            what=f"Column {name} cannot take the value {value!s:.100}.",
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
            what=f"Some keys are not values of the key column {field.name}, a {field.type}.",
            why=str(error).partition("\n")[0],
            now="Pass keys as the column has them.",
        ) from None


def _check_values(values: Values, names: Sequence[str], config: TableConfig) -> None:
    unknown = [name for name in values if name not in names]
    fixed = [name for name in values if name in config.key_fields]
    if unknown or fixed or not values:
        problem = (
            f"The table has no column {unknown[0]!r}."
            if unknown
            else f"{fixed[0]!r} is a key column."
            if fixed
            else "The update names no column."
        )
        raise InvalidRequest(
            "bad_update",
            what=f"The update cannot set these values. {problem}",
            why="An update changes columns of existing rows, but not their keys.",
            now="To change keys, delete the rows and insert new ones.",
        )
