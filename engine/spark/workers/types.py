"""Types: what Spark calls the types of Arrow, and the Arrow types in which it takes values back.

Texts stand for Spark's types, so that nothing here needs PySpark.
"""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as kinds

from lakewarden.engine.kernel.errors import InvalidRequest

_DECIMAL_PRECISION_MAX = 38
_SIMPLE: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (kinds.is_boolean, "boolean"),
    (kinds.is_int8, "tinyint"),
    (kinds.is_int16, "smallint"),
    (kinds.is_int32, "int"),
    (kinds.is_int64, "bigint"),
    (kinds.is_float32, "float"),
    (kinds.is_float64, "double"),
    (kinds.is_string, "string"),
    (kinds.is_binary, "binary"),
    (kinds.is_fixed_size_binary, "binary"),
    (kinds.is_date32, "date"),
)


def ddl(schema: pa.Schema) -> str:
    """A schema in Spark's words; a column of a type that Spark lacks is refused by name."""
    return ", ".join(f"{quoted(field.name)} {_type_of(field)}" for field in schema)


def quoted(name: str) -> str:
    """A column's name as SQL text."""
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def spark_type(type_: pa.DataType) -> str | None:
    """Spark's name of a type; None for a type whose values it can't all hold."""
    for matches, name in _SIMPLE:
        if matches(type_):
            return name
    if kinds.is_decimal(type_):
        fits = type_.precision <= _DECIMAL_PRECISION_MAX
        return f"decimal({type_.precision},{type_.scale})" if fits else None
    if kinds.is_timestamp(type_) and type_.unit != "ns":
        return "timestamp" if type_.tz else "timestamp_ntz"
    return _nested_type(type_)


def _nested_type(type_: pa.DataType) -> str | None:
    if kinds.is_list(type_):
        items = spark_type(type_.value_type)
        return items and f"array<{items}>"
    if kinds.is_map(type_):
        keys, values = spark_type(type_.key_type), spark_type(type_.item_type)
        return keys and values and f"map<{keys},{values}>"
    if kinds.is_struct(type_):
        fields = [(quoted(field.name), spark_type(field.type)) for field in type_]
        if all(text for _, text in fields):
            return f"struct<{','.join(f'{name}:{text}' for name, text in fields)}>"
    return None


def wire_schema(schema: pa.Schema) -> pa.Schema:
    """The schema in which workers have to hand over columns: Spark takes one form of each type."""
    return pa.schema([pa.field(field.name, wire_type(field.type)) for field in schema])


def wire_type(type_: pa.DataType) -> pa.DataType:
    """The one Arrow type in which Spark takes values of its type."""
    if kinds.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    if kinds.is_fixed_size_binary(type_):
        return pa.binary()
    if kinds.is_list(type_):
        return pa.list_(pa.field(type_.value_field.name, wire_type(type_.value_type)))
    if kinds.is_map(type_):
        return pa.map_(wire_type(type_.key_type), wire_type(type_.item_type))
    if kinds.is_struct(type_):
        return pa.struct([pa.field(field.name, wire_type(field.type)) for field in type_])
    return type_


def _type_of(field: pa.Field) -> str:
    type_ = spark_type(field.type)
    if type_ is None:
        raise InvalidRequest(
            "unsupported_spark_type",
            what=f"A DataFrame cannot hold column {field.name!r} of type {field.type}.",
            why="Spark has no type for all its values.",
            now="Leave the column out with columns=[...], or read with read_arrow().",
            column=field.name,
        )
    return type_
