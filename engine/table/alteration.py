"""Alterations: the columns of a table after ALTER TABLE, in Avro and in the schema history.

Fields inside of structs, lists and maps change as whole columns do; paths lead to them.

Ids of columns outlive their names, so a column that is renamed or dropped needs the history (schema
on read): files keep their old names, and a new column of the same name is another column. Changes
that do not need it leave a table without history as it is.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import types

from lakewarden.engine.formats.avro.arrow_types import avro_schema
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.column_types import TypeChange, change_of_type, table_type
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.evolved_history import CarriedHistory, Field, Made, altered_history
from lakewarden.engine.table.schema import META_COLUMNS, SchemaHistory, TableSchema, schema_from

_PLACE = "the altered schema"
_ELEMENT, _VALUE = "element", "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChange:
    """One change of a column; what is None stays. A column comes with `adds`, and goes by `drops`.

    A path with dots leads to a field inside a column. `after` is the column, or the field beside
    it, that it stands behind; an empty text is the first place.
    """

    column: str
    adds: bool = False
    drops: bool = False
    new_name: str | None = None
    type: pa.DataType | None = None
    nullable: bool | None = None
    comment: str | None = None
    after: str | None = None
    if_exists: bool = False

    @property
    def path(self) -> tuple[str, ...]:
        """The columns that lead to it, and itself; inside of lists `element`, of maps `value`."""
        return tuple(self.column.split("."))

    @property
    def parents(self) -> tuple[str, ...]:
        return self.path[:-1]


@dataclass(frozen=True, slots=True)
class Alteration:
    """Changes of columns, one after the other."""

    changes: tuple[ColumnChange, ...]

    def schema(self, current: TableSchema, config: TableConfig) -> TableSchema:
        """The schema after the changes; any that cannot be is refused by name."""
        assert current.avro_text is not None
        record = json.loads(current.avro_text)
        record["fields"] = [one for one in record["fields"] if one["name"] not in META_COLUMNS]
        name, namespace = record["name"], record.get("namespace", "")
        found = current
        for change in self.changes:
            _check(change, _siblings(found.columns, change.column), config)
            # What is inside a column has its own names, as those of whole columns have.
            inner = ".".join((namespace, *change.parents)).strip(".")
            inner = _unused(inner, f"{name}.{change.path[-1]}", set(_names_in(record, "")))

            def made(column: pa.Field, known: Field | None, inner: str = inner) -> Field:
                text = avro_schema(pa.schema([column.with_nullable(True)]), name, inner)
                field: Field = json.loads(text)["fields"][0]
                return {
                    **(known or {}),
                    "name": column.name,
                    "type": field["type"],
                    "default": None,
                }

            record["fields"] = _applied(record["fields"], change.path, change, made)
            found = schema_from(json.dumps(record, separators=(",", ":")), _PLACE)
        return found

    def history(
        self, history: SchemaHistory, before: TableSchema, instant: str
    ) -> CarriedHistory | None:
        """What the commit says of its version, and leaves; nothing if no history is needed."""
        if not history.versions and not self._needs_history(before.columns):
            return None
        return altered_history(history, before.with_meta(), self.applied, instant)

    def applied(self, fields: Sequence[Field], made: Made) -> list[Field]:
        """The fields of a record after the changes."""
        result = [dict(field) for field in fields]
        for change in self.changes:
            result = _applied(result, change.path, change, made)
        return result

    def unsure(self, current: TableSchema) -> list[tuple[str, pa.DataType]]:
        """Columns whose new type not all values of the old one need have a place in."""
        found = []
        for change in self.changes:
            before = _siblings(current.columns, change.column).get(change.path[-1])
            if change.type is None or change.adds or before is None:
                continue
            wanted = table_type(change.type, change.column)
            if change_of_type(before, wanted) is TypeChange.CHECKED:
                root = current.columns.field(change.path[0]).type
                found.append((change.path[0], _replaced(root, change.path[1:], wanted)))
        return found

    def _needs_history(self, columns: pa.Schema) -> bool:
        """Whether files alone would say something else: of names, or of another kind of values."""
        return any(
            one.drops or one.new_name is not None or _changes_kind(one, columns)
            for one in self.changes
        )


def _unused(namespace: str, name: str, taken: set[str]) -> str:
    """A namespace in which no type has a name: a column that was renamed keeps its types' names."""
    found, number = namespace, 1
    while any(f"{one}.".startswith(f"{found}.{name}.") for one in taken):
        number += 1
        found = f"{namespace}.v{number}"
    return found


def _names_in(type_: object, namespace: str) -> Iterator[str]:
    """The full names of all types that are defined in an Avro schema."""
    if isinstance(type_, list):
        for branch in type_:
            yield from _names_in(branch, namespace)
    elif isinstance(type_, Mapping):
        if isinstance(type_.get("name"), str) and type_.get("type") in ("record", "fixed", "enum"):
            full = str(type_["name"])
            full = full if "." in full else f"{type_.get('namespace', namespace)}.{full}"
            namespace = full.rpartition(".")[0]
            yield full
        for key in ("type", "items", "values"):
            yield from _names_in(type_.get(key), namespace)
        for field in type_.get("fields", ()):
            yield from _names_in(field.get("type"), namespace)


def _changes_kind(change: ColumnChange, columns: pa.Schema) -> bool:
    before = _siblings(columns, change.column).get(change.path[-1])
    if change.type is None or change.adds or before is None:
        return False
    wanted = table_type(change.type, change.column)
    return change_of_type(before, wanted) is not TypeChange.WIDER


def _siblings(columns: pa.Schema, path: str) -> dict[str, pa.DataType]:
    """The columns that stand where a path leads to, itself among them."""
    *parents, _ = path.split(".")
    found = {field.name: field.type for field in columns}
    for name in parents:
        inner = found.get(name)
        found = {} if inner is None else _inner_types(inner)
    return found


def _inner_types(type_: pa.DataType) -> dict[str, pa.DataType]:
    """What is inside a type, by the names that a path has for it."""
    if types.is_struct(type_):
        return {field.name: field.type for field in type_}
    if types.is_map(type_):
        return {_VALUE: type_.item_type}
    return {_ELEMENT: type_.value_type} if types.is_list(type_) else {}


def _replaced(type_: pa.DataType, path: Sequence[str], inner: pa.DataType) -> pa.DataType:
    """A type that has another one at a path."""
    if not path:
        return inner
    name, *rest = path
    deeper = _replaced(_inner_types(type_)[name], rest, inner)
    if types.is_struct(type_):
        return pa.struct([one.with_type(deeper) if one.name == name else one for one in type_])
    if types.is_map(type_):
        return pa.map_(type_.key_type, type_.item_field.with_type(deeper))
    return pa.list_(type_.value_field.with_type(deeper))


def column_comments(schema: TableSchema) -> dict[str, str]:
    """What is said of columns; Avro keeps it."""
    fields = json.loads(schema.avro_text)["fields"] if schema.avro_text else []
    return {field["name"]: str(field["doc"]) for field in fields if field.get("doc")}


def _applied(
    fields: Sequence[Field], path: Sequence[str], change: ColumnChange, made: Made
) -> list[Field]:
    """The fields of a record after a change at a path from there."""
    name, *rest = path
    if not rest:
        return _changed([dict(field) for field in fields], change, made)
    return [
        {**field, "type": _applied_inside(field["type"], rest, change, made)}
        if field["name"] == name
        else dict(field)
        for field in fields
    ]


def _applied_inside(type_: object, path: Sequence[str], change: ColumnChange, made: Made) -> object:
    """A type in Avro, or in the words of the history, after a change inside it."""
    if isinstance(type_, list):
        return [_applied_inside(branch, path, change, made) for branch in type_]
    if not isinstance(type_, Mapping):
        return type_
    if "fields" in type_:
        return {**type_, "fields": _applied(type_["fields"], path, change, made)}
    # Avro calls items and values what the history calls element and value.
    place = next(name for name in ("items", "values", _ELEMENT, _VALUE) if name in type_)
    rest = path[1:]
    if rest:
        return {**type_, place: _applied_inside(type_[place], rest, change, made)}
    assert change.type is not None
    known: Field = {"name": path[0], "type": type_[place]}
    return {**type_, place: made(pa.field(path[0], change.type), known)["type"]}


def _changed(fields: list[Field], change: ColumnChange, made: Made) -> list[Field]:
    names = [field["name"] for field in fields]
    own = change.path[-1]
    if own not in names and not change.adds:
        # Only a column that may be missing comes here.
        return fields
    if change.adds:
        field = made(pa.field(own, change.type), None)
        at = len(fields)
    else:
        at = names.index(own)
        field = fields.pop(at)
        if change.drops:
            return fields
        if change.type is not None:
            field = made(pa.field(own, change.type), field)
    if change.new_name is not None:
        field = {**field, "name": change.new_name}
    if change.comment is not None:
        field = {**field, "doc": change.comment}
    if change.nullable and not change.adds:
        field = _optional(field)
    if change.after is not None:
        at = _place(fields, change.after)
    fields.insert(at, field)
    return fields


def _optional(field: Field) -> Field:
    """The same field, which may be null; in Avro that is a part of its type."""
    type_ = field["type"]
    if "optional" in field:
        return {**field, "optional": True}
    is_optional = isinstance(type_, list) and "null" in type_
    return field if is_optional else {**field, "type": ["null", type_], "default": None}


def _place(fields: Sequence[Field], after: str) -> int:
    """Where a column stands that comes behind another one, or first among the table's own."""
    names = [str(field["name"]) for field in fields]
    if after:
        return names.index(after) + 1
    return len([name for name in names if name in META_COLUMNS])


def _check(change: ColumnChange, beside: Mapping[str, pa.DataType], config: TableConfig) -> None:
    """Refuse what cannot be; `beside` are the columns in its place."""
    name, own = change.column, change.path[-1]
    if change.adds:
        _check_added(change, beside)
    elif own not in beside:
        if change.if_exists:
            return
        raise unsupported_change(name, f"The table has {', '.join(beside)}.", "Name one of them.")
    if change.drops or change.new_name is not None:
        _check_name(change, beside, config)
        return
    if change.type is not None and not change.adds:
        _check_type(change, beside[own], config)
    if change.nullable is False and not change.adds:
        why = "Rows that are there may have no value for it."
        raise unsupported_change(name, why, "Leave out NOT NULL.")
    if change.after == own:
        raise unsupported_change(name, "It cannot stand behind itself.", "Name another column.")
    if change.after and change.after not in beside:
        raise unsupported_change(
            change.after, f"The table has {', '.join(beside)}.", "Name one of them."
        )


def _check_added(change: ColumnChange, beside: Mapping[str, pa.DataType]) -> None:
    name, own = change.column, change.path[-1]
    assert change.type is not None
    if (change.parents and not beside) or (own in (_ELEMENT, _VALUE) and own in beside):
        raise unsupported_change(
            name, "The table has no such struct.", "Name the column of a struct."
        )
    if _is_taken(own, beside):
        raise unsupported_change(
            name, "The table has a column of this name.", "Choose another name."
        )
    if change.nullable is False:
        raise unsupported_change(
            name, "Rows that are there have no value for it.", "Leave out NOT NULL."
        )
    table_type(change.type, name)


def _is_taken(name: str, beside: Collection[str]) -> bool:
    """Whether SQL would not tell a name from another one: the case of letters does not matter."""
    return name.lower() in {one.lower() for one in (*beside, *META_COLUMNS)}


def _check_name(
    change: ColumnChange, beside: Mapping[str, pa.DataType], config: TableConfig
) -> None:
    """Refuse to rename or drop what has to stay."""
    name, other = change.column, change.new_name
    if any(f"{one}.".startswith(f"{name}.") for one in _identifying(config)):
        why = "Keys, partitions or the order of rows are made of it."
        raise unsupported_change(name, why, "Write the rows into a new table.")
    if other is not None and _is_taken(other, set(beside) - {change.path[-1]}):
        raise unsupported_change(name, f"The table has a column {other}.", "Choose another name.")
    if change.drops and len(beside) == 1:
        raise unsupported_change(
            name, "Nothing would be left beside it.", "Drop the column around it."
        )


def _check_type(change: ColumnChange, before: pa.DataType, config: TableConfig) -> None:
    name, wanted = change.column, table_type(change.type, change.column)
    kind = change_of_type(before, wanted)
    if kind is None:
        why = f"Hudi makes no {wanted} of {before}."
        raise unsupported_change(name, why, "Add a column of the new type, and UPDATE it.")
    if kind is TypeChange.NONE or name not in _identifying(config):
        return
    # The text of a key is the same, and its place with it.
    if name not in config.key_fields or wanted != pa.int64():
        why = "Keys, partitions or the order of rows are made of it."
        raise unsupported_change(name, why, "Add a column of the new type, and UPDATE it.")


def _identifying(config: TableConfig) -> tuple[str, ...]:
    """The columns that tell rows, their place and their order."""
    fields = (one.name for one in config.partitions.fields)
    return (*config.key_fields, *fields, *config.merge.ordering_fields)


def unsupported_change(column: str, why: str, now: str) -> InvalidRequest:
    """The refusal of an ALTER TABLE."""
    return InvalidRequest(
        "unsupported_schema_change",
        what=f"ALTER TABLE cannot change the column {column} so.",
        why=why,
        now=now,
        column=column,
    )


def of_mapping(said: Mapping[str, object], type_: pa.DataType | None) -> ColumnChange:
    """A change as SQL says it."""
    kind, name = said["kind"], str(said["column"])
    after = said.get("after")
    comment = said.get("comment")
    nullable = said.get("nullable")
    return ColumnChange(
        column=name,
        adds=kind == "add",
        drops=kind == "drop",
        new_name=str(said["name"]) if kind == "rename" else None,
        type=type_,
        nullable=None if nullable is None else bool(nullable),
        comment=None if comment is None else str(comment),
        after="" if said.get("first") else None if after is None else str(after),
        if_exists=bool(said.get("if_exists")),
    )
