"""Spark's spelling of Arrow types, so that frames can be made without importing PySpark."""

import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest

_SIMPLE = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "tinyint"),
    (pa.types.is_int16, "smallint"),
    (pa.types.is_int32, "int"),
    (pa.types.is_int64, "bigint"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_binary, "binary"),
    (pa.types.is_large_binary, "binary"),
    (pa.types.is_fixed_size_binary, "binary"),
    (pa.types.is_date32, "date"),
)


def ddl(schema: pa.Schema) -> str:
    """A schema as Spark's DDL text."""
    return ", ".join(f"{_quoted(field.name)} {spark_type(field.type)}" for field in schema)


def spark_type(type_: pa.DataType) -> str:
    """One type as Spark's DDL text; types Spark does not have are refused by name."""
    for matches, name in _SIMPLE:
        if matches(type_):
            return name
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_timestamp(type_):
        return "timestamp" if type_.tz else "timestamp_ntz"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"array<{spark_type(type_.value_type)}>"
    if pa.types.is_map(type_):
        return f"map<{spark_type(type_.key_type)},{spark_type(type_.item_type)}>"
    if pa.types.is_struct(type_):
        fields = (f"{_quoted(field.name)}:{spark_type(field.type)}" for field in type_)
        return f"struct<{','.join(fields)}>"
    raise InvalidRequest(
        "unsupported_spark_type",
        what=f"Spark has no type for {type_}.",
        why="The column can't be handed to a DataFrame.",
        now="Leave the column out with columns=[...], or read with read_arrow().",
    )


def _quoted(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"
