"""Avro schemas: JSON text to a tree of types; names are resolved, nonsense is refused.

Written schemas: as much of an Avro schema as it takes to read bytes that are there.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias, TypeGuard

from lakewarden.engine.formats.avro.types import (
    ArrayType,
    AvroType,
    DecimalType,
    EnumType,
    Field,
    FixedType,
    Logical,
    MapType,
    Primitive,
    PrimitiveType,
    RecordType,
    UnionType,
    branch_key,
    depth,
    empty_places,
    weight,
)
from lakewarden.engine.kernel.errors import InvalidRequest, corrupt

# Documents, what stands for a missing field, and how Java holds texts: the reader's own choices.
_READERS_CHOICE = frozenset({"doc", "default", "avro.java.string"})


@lru_cache(maxsize=64)
def written_schema(text: str) -> str:
    """The same schema without what says nothing of bytes; a small file is mostly its schema."""
    return json.dumps(_without(json.loads(text)), separators=(",", ":"))


def _without(part: object) -> object:
    if isinstance(part, list):
        return [_without(one) for one in part]
    if not isinstance(part, dict):
        return part
    kept = {name: _without(one) for name, one in part.items() if name not in _READERS_CHOICE}
    return "string" if kept == {"type": "string"} else kept


# Tables have thousands of columns, not hundreds of thousands; a short text that names its own
# records again and again could stand for more types than fit in memory.
MAXIMUM_WEIGHT = 200_000
MAXIMUM_DEPTH = 100
# A null in a column of fixed width takes as much room as a value.
MAXIMUM_FIXED_SIZE = 4096
MAXIMUM_PRECISION = 76
_REMEMBERED_SCHEMAS = 128

# What a JSON object is to the type checker after a look at its keys.
_Json: TypeAlias = Mapping[object, object]

_PRIMITIVES = {primitive.value: primitive for primitive in Primitive}
_LOGICAL_TYPES = {
    Primitive.INT: (Logical.DATE, Logical.TIME_MILLIS),
    Primitive.LONG: (
        Logical.TIME_MICROS,
        Logical.TIMESTAMP_MILLIS,
        Logical.TIMESTAMP_MICROS,
        Logical.TIMESTAMP_NANOS,
        Logical.LOCAL_TIMESTAMP_MILLIS,
        Logical.LOCAL_TIMESTAMP_MICROS,
        Logical.LOCAL_TIMESTAMP_NANOS,
    ),
    Primitive.STRING: (Logical.UUID,),
}


def parse_schema(text: str, path: str) -> RecordType:
    """The record type that a schema text describes; `path` names the file it came from."""
    try:
        return _parsed(text)
    except (ValueError, RecursionError) as error:
        reason = "too deeply nested" if isinstance(error, RecursionError) else error
        raise corrupt(path, None, f"Its Avro schema cannot be read: {reason}.") from error


@lru_cache(maxsize=_REMEMBERED_SCHEMAS)
def _parsed(text: str) -> RecordType:
    found = _Parser().type_of(json.loads(text), namespace="", nesting=0)
    if not isinstance(found, RecordType):
        raise ValueError("the outermost type is not a record")
    return found


class _Parser:
    """One pass over a schema; remembers named types, and those still being defined as `None`."""

    def __init__(self) -> None:
        self._named: dict[str, AvroType | None] = {}

    def type_of(self, schema: object, namespace: str, nesting: int) -> AvroType:
        if nesting > MAXIMUM_DEPTH:
            raise _unsupported("depth", f"more than {MAXIMUM_DEPTH} types contain each other")
        match schema:
            case str():
                return self._by_name(schema, namespace)
            case list():
                return self._union(schema, namespace, nesting)
            case {"type": (dict() | list()) as inner}:
                return self.type_of(inner, namespace, nesting + 1)
            case {"type": str(kind), **properties}:
                return self._by_kind(kind, properties, namespace, nesting)
        raise ValueError(f"{_short(schema)} is no type")

    def _by_name(self, name: str, namespace: str) -> AvroType:
        if name in _PRIMITIVES:
            return PrimitiveType(_PRIMITIVES[name])
        for full_name in (_full_name(name, namespace), name):
            if full_name in self._named:
                found = self._named[full_name]
                if found is None:
                    raise _unsupported_recursion(full_name)
                return found
        raise ValueError(f"the type {name!r} is not defined")

    def _by_kind(self, kind: str, schema: _Json, namespace: str, nesting: int) -> AvroType:
        if kind in _PRIMITIVES:
            return _with_meaning(_PRIMITIVES[kind], schema)
        if kind == "array":
            return ArrayType(_item(self.type_of(schema.get("items"), namespace, nesting + 1)))
        if kind == "map":
            return MapType(_item(self.type_of(schema.get("values"), namespace, nesting + 1)))
        if kind in ("record", "error", "fixed", "enum"):
            return self._definition(kind, schema, namespace, nesting)
        return self._by_name(kind, namespace)

    def _definition(self, kind: str, schema: _Json, namespace: str, nesting: int) -> AvroType:
        own_namespace = schema.get("namespace", namespace)
        full_name = _full_name(
            _text(schema.get("name"), "a name"), _text(own_namespace, "a namespace")
        )
        if full_name in self._named:
            raise ValueError(f"the type {full_name!r} is defined twice")
        self._named[full_name] = None
        defined: AvroType
        if kind == "fixed":
            defined = _fixed(full_name, schema)
        elif kind == "enum":
            defined = EnumType(full_name, _symbols(schema.get("symbols")))
        else:
            defined = self._record(full_name, schema, nesting)
        self._named[full_name] = defined
        return defined

    def _record(self, full_name: str, schema: _Json, nesting: int) -> RecordType:
        listed = schema.get("fields")
        if not isinstance(listed, list):
            raise ValueError(f"the record {full_name!r} has no list of fields")
        namespace = full_name.rpartition(".")[0]
        fields = tuple(self._field(one, namespace, nesting) for one in listed)
        if len({field.name for field in fields}) < len(fields):
            raise ValueError(f"the record {full_name!r} has two fields of one name")
        return _bounded(RecordType(full_name, fields))

    def _field(self, field: object, namespace: str, nesting: int) -> Field:
        if not isinstance(field, dict):
            raise ValueError(f"{_short(field)} is no field")
        default = json.dumps(field["default"]) if "default" in field else None
        type_ = self.type_of(field.get("type"), namespace, nesting + 1)
        return Field(_text(field.get("name"), "a field name"), type_, default)

    def _union(self, schemas: list[object], namespace: str, nesting: int) -> AvroType:
        branches = tuple(self.type_of(one, namespace, nesting + 1) for one in schemas)
        if any(isinstance(branch, UnionType) for branch in branches):
            raise ValueError("a union stands directly in a union")
        names = [branch_key(branch) for branch in branches]
        if not names or len(set(names)) < len(names):
            raise ValueError("a union has no branch, or two of one type")
        return UnionType(branches)


def _item(type_: AvroType) -> AvroType:
    # A few bytes could claim any number of such items, so no bound on memory would hold.
    if empty_places(type_) > 0:
        raise _unsupported("items", "an array or map has values of no bytes")
    return type_


def _with_meaning(primitive: Primitive, schema: _Json) -> AvroType:
    logical = schema.get("logicalType")
    if primitive is Primitive.BYTES and logical == "decimal":
        return _decimal(schema, None) or PrimitiveType(primitive)
    for meaning in _LOGICAL_TYPES.get(primitive, ()):
        if meaning.value == logical:
            return PrimitiveType(primitive, meaning)
    return PrimitiveType(primitive)


def _fixed(full_name: str, schema: _Json) -> AvroType:
    size = schema.get("size")
    if not _is_number(size) or size < 0:
        raise ValueError(f"the fixed {full_name!r} has no usable size")
    if size > MAXIMUM_FIXED_SIZE:
        raise _unsupported("fixed", f"a fixed has more than {MAXIMUM_FIXED_SIZE} bytes")
    fixed = FixedType(full_name, size)
    return (_decimal(schema, fixed) if schema.get("logicalType") == "decimal" else None) or fixed


def _decimal(schema: _Json, fixed: FixedType | None) -> DecimalType | None:
    """The decimal described, or `None` if it makes no sense: Avro then ignores the meaning."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if not _is_number(precision) or not _is_number(scale) or not 0 <= scale <= precision:
        return None
    if precision == 0 or (fixed is not None and not _holds(fixed.size, precision)):
        return None
    return DecimalType(precision, scale, fixed)


def _holds(size: int, precision: int) -> bool:
    """Whether every number of that many digits fits in that many signed bytes."""
    # No column type takes more digits than this, so there the answer no longer matters.
    return precision > MAXIMUM_PRECISION or (10**precision - 1).bit_length() < 8 * size


def _symbols(listed: object) -> tuple[str, ...]:
    if not isinstance(listed, list) or not listed:
        raise ValueError("an enum has no symbols")
    return tuple(_text(symbol, "an enum symbol") for symbol in listed)


def _bounded(record: RecordType) -> RecordType:
    if weight(record) > MAXIMUM_WEIGHT:
        raise _unsupported("size", f"references expand to more than {MAXIMUM_WEIGHT} types")
    if depth(record) > MAXIMUM_DEPTH:
        raise _unsupported("depth", f"more than {MAXIMUM_DEPTH} types contain each other")
    return record


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or (not value and what != "a namespace"):
        raise ValueError(f"{_short(value)} is not {what}")
    return value


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _short(value: object) -> str:
    return repr(value)[:60]


def _unsupported(part: str, why: str) -> InvalidRequest:
    return InvalidRequest(
        f"unsupported_schema_{part}",
        what="Lakewarden cannot read this Avro schema.",
        why=f"In it, {why}.",
        now="Use a simpler schema.",
    )


def _unsupported_recursion(name: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_recursive_schema",
        what=f"The Avro type {name} contains itself.",
        why="No column type can hold it.",
        now="Use a schema whose records do not contain themselves.",
        name=name,
    )
