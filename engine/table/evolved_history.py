"""Evolved history: the schema history of a table after a write of ours, as Java keeps it.

Every commit of an evolved table names the version its files were written in; a commit that does
not makes Java read renamed columns as null, in all older files. Ids outlive names, so a column that
is new gets one that no column ever had.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyarrow import types

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.schema import SchemaHistory, SchemaVersion

LATEST_SCHEMA_KEY = "latest_schema"
_PRIMITIVES = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
}


Field = dict[str, object]
# What a field becomes for a column, and what it was.
Made = Callable[[pa.Field, Field | None], Field]
# How changes make new fields of those that there are.
Applied = Callable[[Sequence[Field], Made], list[Field]]


@dataclass(frozen=True, slots=True)
class CarriedHistory:
    """What a commit says of the schema's version, and what it leaves for the writes to come."""

    latest: str
    content: bytes


def carried_history(
    history: SchemaHistory, before: pa.Schema, after: pa.Schema, instant: str
) -> CarriedHistory | None:
    """The history carried on by a write that found some columns and leaves others behind.

    Nothing for a table that has never evolved so. A change that Java has no words for is refused.
    """
    if not history.versions:
        return None
    versions = list(history.versions)
    # Writers without a history may have added columns; their files have them by these names.
    versions[-1] = _known(versions[-1], before)
    if not after.equals(before):
        versions.append(_evolved(versions[-1], before, after, instant))
    newest_first = ",".join(version.text for version in reversed(versions))
    return CarriedHistory(versions[-1].text, f'{{"schemas":[{newest_first}]}}'.encode())


def altered_history(
    history: SchemaHistory, before: pa.Schema, applied: Applied, instant: str
) -> CarriedHistory:
    """The history after ALTER TABLE; a table without one begins it with the columns it has had."""
    versions = list(history.versions) or [_first()]
    versions[-1] = _known(versions[-1], before)
    document = json.loads(versions[-1].text)
    ids = _Ids(document)
    fields = applied(document["fields"], lambda column, known: _field(column, known, ids))
    document = {**document, "version_id": int(instant or 0), "fields": fields}
    versions.append(SchemaVersion(instant, {}, _text(document, ids)))
    newest_first = ",".join(version.text for version in reversed(versions))
    return CarriedHistory(versions[-1].text, f'{{"schemas":[{newest_first}]}}'.encode())


def _first() -> SchemaVersion:
    """The version before the first change, which has no columns yet."""
    document = {"max_column_id": -1, "version_id": 0, "type": "record", "fields": []}
    return SchemaVersion("", {}, json.dumps(document))


def _known(version: SchemaVersion, columns: pa.Schema) -> SchemaVersion:
    """The version with columns and fields inside them that others have added without a history."""
    document = json.loads(version.text)
    ids = _Ids(document)
    arrived = {column.name: column for column in columns}
    before = ids.last
    fields = [
        _grown(field, arrived.pop(str(field["name"]), None), ids) for field in document["fields"]
    ]
    fields += [_field(column, None, ids) for column in arrived.values()]
    if ids.last == before:
        return version
    return replace(version, text=_text({**document, "fields": fields}, ids))


def _grown(field: Field, column: pa.Field | None, ids: "_Ids") -> Field:
    """A column with the fields inside it that the history does not know, if it has any."""
    if column is None or not types.is_nested(column.type):
        return field
    before = ids.last
    known = _field(column, field, ids)
    return field if ids.last == before else known


def _evolved(
    version: SchemaVersion, before: pa.Schema, after: pa.Schema, instant: str
) -> SchemaVersion:
    document = json.loads(version.text)
    ids = _Ids(document)
    fields = {field["name"]: field for field in document["fields"]}
    for column in after:
        place = before.get_field_index(column.name)
        if place < 0 or before.field(place).type != column.type:
            fields[column.name] = _field(column, fields.get(column.name), ids)
    document = {**document, "version_id": int(instant or 0), "fields": list(fields.values())}
    return SchemaVersion(instant, {}, _text(document, ids))


class _Ids:
    """Ids that no column of a schema has ever had."""

    def __init__(self, document: Mapping[str, object]) -> None:
        used = document.get("max_column_id")
        self.last = used if isinstance(used, int) else max(_ids_in(document), default=-1)

    def next(self) -> int:
        self.last += 1
        return self.last


def _ids_in(value: object) -> Iterator[int]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name in ("id", "element_id", "key_id", "value_id") and isinstance(inner, int):
                yield inner
            yield from _ids_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _ids_in(inner)


def _field(column: pa.Field, known: Mapping[str, object] | None, ids: _Ids) -> dict[str, object]:
    own = dict(known) if known else {"id": ids.next(), "name": column.name, "optional": True}
    return {**own, "type": _type(column.type, own.get("type"), ids, column.name)}


def _type(type_: pa.DataType, known: object, ids: _Ids, place: str) -> object:
    """A type in Java's words; what is inside it keeps the ids it has."""
    old = known if isinstance(known, Mapping) else {}
    if types.is_struct(type_):
        return _struct(type_, old, ids, place)
    if types.is_list(type_):
        element = old.get("element_id")
        return {
            "type": "array",
            "element_id": ids.next() if element is None else element,
            "element": _type(type_.value_type, old.get("element"), ids, place),
            "element_optional": True,
        }
    if types.is_map(type_):
        key, value = old.get("key_id"), old.get("value_id")
        return {
            "type": "map",
            "key_id": ids.next() if key is None else key,
            "key": "string",
            "value_id": ids.next() if value is None else value,
            "value": _type(type_.item_type, old.get("value"), ids, place),
            "value_optional": True,
        }
    if types.is_decimal(type_):
        return f"decimal({type_.precision}, {type_.scale})"
    if type_ not in _PRIMITIVES:
        raise _inexpressible(type_, place)
    return _PRIMITIVES[type_]


def _struct(
    type_: pa.StructType, old: Mapping[str, object], ids: _Ids, place: str
) -> dict[str, object]:
    inner = old.get("fields")
    known = {one["name"]: one for one in inner} if isinstance(inner, list) else {}
    # Java numbers what stands side by side before it goes further in.
    own = [
        known.get(field.name) or {"id": ids.next(), "name": field.name, "optional": True}
        for field in type_
    ]
    fields = [
        {**one, "type": _type(field.type, one.get("type"), ids, f"{place}.{field.name}")}
        for one, field in zip(own, type_, strict=True)
    ]
    return {"type": "record", "fields": fields}


def _text(document: Mapping[str, object], ids: _Ids) -> str:
    numbered = {"max_column_id": ids.last, **document} | {"max_column_id": ids.last}
    return json.dumps(numbered, separators=(",", ":"), ensure_ascii=False)


def _inexpressible(type_: pa.DataType, place: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_schema_change",
        what=f"Lakewarden cannot add column {place} of type {type_} to this table.",
        why="The table keeps a schema history (schema on read), which has no such type.",
        now="Nothing was written. Cast the column.",
        column=place,
        type=str(type_),
    )
