"""Avro types as Arrow types, shown as Spark and Hudi show them; and back, as Hudi writes them."""

import json
import re
from collections.abc import Iterable
from functools import lru_cache

import pyarrow as pa

from lakewarden.engine.formats.avro.types import (
    NULL,
    ArrayType,
    AvroType,
    DecimalType,
    EnumType,
    FixedType,
    Logical,
    MapType,
    Primitive,
    PrimitiveType,
    RecordType,
    UnionType,
    branch_key,
)
from lakewarden.engine.kernel.errors import InvalidRequest

# The names that parquet files give to these inner columns.
LIST_ITEM = "element"
MAP_VALUE = "value"

_DECIMAL128_PRECISION = 38
_DECIMAL256_PRECISION = 76
# Decoding asks for the same types at every block of records.
_REMEMBERED_TYPES = 1024

_PRIMITIVES = {
    Primitive.NULL: pa.null(),
    Primitive.BOOLEAN: pa.bool_(),
    Primitive.INT: pa.int32(),
    Primitive.LONG: pa.int64(),
    Primitive.FLOAT: pa.float32(),
    Primitive.DOUBLE: pa.float64(),
    Primitive.BYTES: pa.binary(),
    Primitive.STRING: pa.string(),
}
_LOGICAL = {
    Logical.DATE: pa.date32(),
    Logical.TIME_MILLIS: pa.time32("ms"),
    Logical.TIME_MICROS: pa.time64("us"),
    Logical.TIMESTAMP_MILLIS: pa.timestamp("ms", "UTC"),
    Logical.TIMESTAMP_MICROS: pa.timestamp("us", "UTC"),
    Logical.TIMESTAMP_NANOS: pa.timestamp("ns", "UTC"),
    Logical.LOCAL_TIMESTAMP_MILLIS: pa.timestamp("ms"),
    Logical.LOCAL_TIMESTAMP_MICROS: pa.timestamp("us"),
    Logical.LOCAL_TIMESTAMP_NANOS: pa.timestamp("ns"),
    Logical.UUID: pa.string(),
}
# Small integers widen; an unsigned 64-bit integer has no room in any Avro type.
_PLAIN_NAMES = {
    pa.bool_(): "boolean",
    **dict.fromkeys((pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32()), "int"),
    **dict.fromkeys((pa.uint32(), pa.int64()), "long"),
    **dict.fromkeys((pa.float16(), pa.float32()), "float"),
    pa.float64(): "double",
    **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), "string"),
    **dict.fromkeys((pa.binary(), pa.large_binary(), pa.binary_view()), "bytes"),
    pa.date32(): {"type": "int", "logicalType": Logical.DATE.value},
    pa.date64(): {"type": "int", "logicalType": Logical.DATE.value},
    pa.time32("ms"): {"type": "int", "logicalType": Logical.TIME_MILLIS.value},
    pa.time64("us"): {"type": "long", "logicalType": Logical.TIME_MICROS.value},
}
# Avro has no seconds, and the finer unit loses nothing.
_TIMESTAMP_UNITS = {"s": "millis", "ms": "millis", "us": "micros", "ns": "nanos"}
# Java's letters and digits are of two bytes; those of others it reads as two signs.
_LAST_SIGN = "\uffff"


def arrow_schema(record: RecordType) -> pa.Schema:
    """The columns in which records of this type appear."""
    return pa.schema([arrow_field(field.name, field.type) for field in record.fields])


def arrow_field(name: str, type_: AvroType) -> pa.Field:
    """A column for values of this type; it is nullable where the type has a null branch."""
    return pa.field(name, arrow_type(type_), nullable=is_nullable(type_))


def is_nullable(type_: AvroType) -> bool:
    """Whether a value of this type may be null."""
    return type_ == NULL or (isinstance(type_, UnionType) and type_.null_index is not None)


def arrow_type(type_: AvroType) -> pa.DataType:
    """The Arrow type of values of this type."""
    match type_:
        case PrimitiveType(primitive=primitive, logical=None):
            return _PRIMITIVES[primitive]
        case PrimitiveType(logical=Logical() as logical):
            return _LOGICAL[logical]
        case DecimalType():
            return _decimal(type_)
        case EnumType():
            return pa.string()
        case FixedType(size=size):
            return pa.binary(size)
        case ArrayType(items=items):
            return pa.list_(arrow_field(LIST_ITEM, items))
        case MapType(values=values):
            return pa.map_(pa.string(), arrow_field(MAP_VALUE, values))
        case RecordType():
            return _struct(type_)
        case UnionType():
            return _union(type_)


def branch_names(union: UnionType) -> tuple[str, ...]:
    """The columns of a union's branches: the names of their types, without namespaces if clear."""
    keys = [branch_key(branch) for branch in union.branches]
    short = [key.rpartition(".")[2] for key in keys]
    return tuple(
        key if short.count(name) > 1 else name for key, name in zip(keys, short, strict=True)
    )


def is_list(type_: pa.DataType) -> bool:
    """Whether Arrow keeps a column of this type as lists, in whatever layout."""
    return any(
        matches(type_)
        for matches in (
            pa.types.is_list,
            pa.types.is_large_list,
            pa.types.is_fixed_size_list,
            pa.types.is_list_view,
            pa.types.is_large_list_view,
        )
    )


@lru_cache(maxsize=_REMEMBERED_TYPES)
def _struct(record: RecordType) -> pa.DataType:
    return pa.struct([arrow_field(field.name, field.type) for field in record.fields])


@lru_cache(maxsize=_REMEMBERED_TYPES)
def _union(union: UnionType) -> pa.DataType:
    """A union of null with one type is that type; any other is a struct of its branches."""
    if union.optional is not None:
        return arrow_type(union.optional)
    return pa.struct(
        [
            pa.field(name, arrow_type(branch))
            for name, branch in zip(branch_names(union), union.branches, strict=True)
            if branch != NULL
        ]
    )


def _decimal(decimal: DecimalType) -> pa.DataType:
    if decimal.precision <= _DECIMAL128_PRECISION:
        return pa.decimal128(decimal.precision, decimal.scale)
    if decimal.precision <= _DECIMAL256_PRECISION:
        return pa.decimal256(decimal.precision, decimal.scale)
    raise InvalidRequest(
        "unsupported_decimal",
        what=f"A decimal of {decimal.precision} digits is not supported.",
        why=f"Columns take at most {_DECIMAL256_PRECISION} digits.",
        now="Lower its precision.",
        precision=decimal.precision,
    )


def record_names(table: str) -> tuple[str, str]:
    """The record name and the namespace that Hudi gives to the records of a table."""
    # Hudi masks what Avro forbids in names: the first character first, then all the others.
    clean = re.sub(r"^[^A-Za-z_]", "__", table)
    clean = re.sub(r"[^A-Za-z0-9_]", "__", clean)
    return f"{clean}_record", f"hoodie.{clean}"


def avro_schema(schema: pa.Schema, name: str, namespace: str) -> str:
    """The schema text that Hudi writes for these columns.

    Nullable columns become unions of null with the type and default to null; types that need a
    name get one from their place. A field's metadata may hold a `doc`.
    """
    return json.dumps(_record(schema, name, namespace), separators=(",", ":"), ensure_ascii=False)


def fixed_decimal_size(precision: int) -> int:
    """The fewest bytes that hold every number of that many digits, by Spark's reckoning."""
    largest: int = 10**precision - 1
    return (largest.bit_length() + 8) // 8


def _record(fields: Iterable[pa.Field], name: str, namespace: str) -> dict[str, object]:
    inner_namespace = f"{namespace}.{name}"
    return {
        "type": "record",
        "name": name,
        "namespace": namespace,
        "fields": [_field(field, inner_namespace) for field in fields],
    }


def is_avro_name(name: str) -> bool:
    """Whether Avro takes the name of a field: letters of any script, as Java knows letters."""
    return (
        bool(name)
        and not name[0].isdecimal()
        and all(sign == "_" or sign.isalpha() or sign.isdecimal() for sign in name)
        and max(name) <= _LAST_SIGN
    )


def _field(field: pa.Field, namespace: str) -> dict[str, object]:
    if not is_avro_name(field.name):
        raise InvalidRequest(
            "unsupported_column_name",
            what=f"Avro cannot hold the column name {field.name!r}.",
            why="Avro names have only letters, digits and underscores, and start with no digit.",
            now="Rename the column.",
            column=field.name,
        )
    described: dict[str, object] = {
        "name": field.name,
        "type": _place(field, field.name, namespace),
    }
    doc = (field.metadata or {}).get(b"doc")
    if doc is not None:
        described["doc"] = doc.decode(errors="replace")
    if field.nullable:
        described["default"] = None
    return described


def _place(field: pa.Field, name: str, namespace: str) -> object:
    """The type at a field, list item or map value; its named types take the column's name."""
    described = _described(field.type, name, namespace)
    return ["null", described] if field.nullable else described


def _described(type_: pa.DataType, name: str, namespace: str) -> object:
    if pa.types.is_dictionary(type_):
        return _described(type_.value_type, name, namespace)
    if pa.types.is_struct(type_):
        return _record(type_, name, namespace)
    if pa.types.is_map(type_) and _PLAIN_NAMES.get(type_.key_type) == "string":
        return {"type": "map", "values": _place(type_.item_field, name, namespace)}
    if is_list(type_):
        return {"type": "array", "items": _place(type_.value_field, name, namespace)}
    if pa.types.is_decimal(type_) and type_.scale >= 0:
        return _fixed_decimal(type_, f"{namespace}.{name}")
    if pa.types.is_fixed_size_binary(type_):
        return _fixed(f"{namespace}.{name}", type_.byte_width)
    return _plain(type_)


def _plain(type_: pa.DataType) -> object:
    if type_ in _PLAIN_NAMES:
        return _PLAIN_NAMES[type_]
    if pa.types.is_timestamp(type_):
        meaning = "timestamp" if type_.tz else "local-timestamp"
        return {"type": "long", "logicalType": f"{meaning}-{_TIMESTAMP_UNITS[type_.unit]}"}
    raise InvalidRequest(
        "unsupported_column_type",
        what=f"Lakewarden cannot write a column of type {type_}.",
        why="Avro, as Hudi uses it, has no such type.",
        now="Cast the column to a supported type.",
        type=str(type_),
    )


def _fixed_decimal(type_: pa.DataType, namespace: str) -> dict[str, object]:
    return {
        **_fixed(namespace, fixed_decimal_size(type_.precision)),
        "logicalType": "decimal",
        "precision": type_.precision,
        "scale": type_.scale,
    }


def _fixed(namespace: str, size: int) -> dict[str, object]:
    return {"type": "fixed", "name": "fixed", "namespace": namespace, "size": size}
