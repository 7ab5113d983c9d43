"""Alterations: the columns of a table after ALTER TABLE, in Avro and in the schema history.

Ids of columns outlive their names, so a column that is renamed or dropped needs the history (schema
on read): files keep their old names, and a new column of the same name is another column. Changes
that do not need it leave a table without history as it is.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakewarden.engine.formats.avro.arrow_types import avro_schema
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.column_types import WIDER, table_type
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.evolved_history import CarriedHistory, Field, Made, altered_history
from lakewarden.engine.table.schema import META_COLUMNS, TableSchema, schema_from
from lakewarden.engine.table.schema_history import SchemaHistory

_PLACE = "the altered schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChange:
    """One change of a column; what is None stays. A column comes with `adds`, and goes by `drops`.

    `after` is the column that it stands behind; an empty text is the first place.
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


@dataclass(frozen=True, slots=True)
class Alteration:
    """Changes of columns, one after the other."""

    changes: tuple[ColumnChange, ...]

    @property
    def needs_history(self) -> bool:
        return any(one.drops or one.new_name is not None for one in self.changes)

    def schema(self, current: TableSchema, config: TableConfig) -> TableSchema:
        """The schema after the changes; any that cannot be is refused by name."""
        assert current.avro_text is not None
        record = json.loads(current.avro_text)
        fields = [one for one in record["fields"] if one["name"] not in META_COLUMNS]
        identifying = (
            *config.key_fields,
            *(one.name for one in config.partitions.fields),
            *config.merge.ordering_fields,
        )
        types = {one.name: one.type for one in current.columns}
        for change in self.changes:
            _check(change, types, {name.partition(".")[0] for name in identifying})
        name, namespace = record["name"], record.get("namespace", "")

        def made(column: pa.Field, known: Field | None) -> Field:
            text = avro_schema(pa.schema([column.with_nullable(True)]), name, namespace)
            field: Field = json.loads(text)["fields"][0]
            return {**(known or {}), "name": column.name, "type": field["type"], "default": None}

        record["fields"] = self.applied(fields, made)
        return schema_from(json.dumps(record, separators=(",", ":")), _PLACE)

    def history(
        self, history: SchemaHistory, before: TableSchema, instant: str
    ) -> CarriedHistory | None:
        """What the commit says of its version, and leaves; nothing if no history is needed."""
        if not history.versions and not self.needs_history:
            return None
        return altered_history(history, before.with_meta(), self.applied, instant)

    def applied(self, fields: Sequence[Field], made: Made) -> list[Field]:
        """The fields of a record after the changes."""
        result = [dict(field) for field in fields]
        for change in self.changes:
            result = _changed(result, change, made)
        return result


def column_comments(schema: TableSchema) -> dict[str, str]:
    """What is said of columns; Avro keeps it."""
    fields = json.loads(schema.avro_text)["fields"] if schema.avro_text else []
    return {field["name"]: str(field["doc"]) for field in fields if field.get("doc")}


def _changed(fields: list[Field], change: ColumnChange, made: Made) -> list[Field]:
    names = [field["name"] for field in fields]
    if change.column not in names and not change.adds:
        # Only a column that may be missing comes here.
        return fields
    if change.adds:
        field = made(pa.field(change.column, change.type), None)
        at = len(fields)
    else:
        at = names.index(change.column)
        field = fields.pop(at)
        if change.drops:
            return fields
        if change.type is not None:
            field = made(pa.field(change.column, change.type), field)
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


def _check(change: ColumnChange, types: dict[str, pa.DataType], fixed: set[str]) -> None:
    """Refuse what cannot be; `types` follows the changes."""
    name = change.column
    if "." in name:
        raise _refused(name, "It is inside a column.", "Change whole columns.")
    if change.adds:
        assert change.type is not None
        if name in types or name in META_COLUMNS:
            raise _refused(name, "The table has a column of this name.", "Choose another name.")
        if change.nullable is False:
            raise _refused(name, "Rows that are there have no value for it.", "Leave out NOT NULL.")
        types[name] = table_type(change.type, name)
    elif name not in types:
        if change.if_exists:
            return
        raise _refused(name, f"The table has {', '.join(types)}.", "Name one of them.")
    if change.drops or change.new_name is not None:
        if name in fixed:
            why = "Keys, partitions or the order of rows are made of it."
            raise _refused(name, why, "Write the rows into a new table.")
        type_ = types.pop(name)
        if change.new_name is not None:
            if change.new_name in types or change.new_name in META_COLUMNS:
                why = f"The table has a column {change.new_name}."
                raise _refused(name, why, "Choose another name.")
            types[change.new_name] = type_
        return
    _check_type(change, types, fixed)
    if change.nullable is False and not change.adds:
        why = "Rows that are there may have no value for it."
        raise _refused(name, why, "Leave out NOT NULL.")
    if change.after and change.after not in types:
        raise _refused(change.after, f"The table has {', '.join(types)}.", "Name one of them.")


def _check_type(change: ColumnChange, types: dict[str, pa.DataType], fixed: set[str]) -> None:
    name = change.column
    if change.type is None or change.adds:
        return
    wanted = table_type(change.type, name)
    if wanted == types[name]:
        return
    if wanted not in WIDER.get(types[name], ()) or name in fixed:
        why = f"Values of {types[name]} do not all stay the same as {wanted}."
        if name in fixed:
            why = "Keys, partitions or the order of rows are made of it."
        raise _refused(name, why, "Add a column of the new type, and UPDATE it.")
    types[name] = wanted


def _refused(column: str, why: str, now: str) -> InvalidRequest:
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
