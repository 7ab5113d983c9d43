"""Predicates on partition columns: which partitions of a table are meant."""

from collections.abc import Mapping

import pyarrow as pa

from lakewarden.engine.table.partitions import PartitionField, PartitionKind
from lakewarden.procedures.conditions.row_filter import row_filter
from lakewarden.procedures.declaring.declaration import Column
from lakewarden.procedures.declaring.sql_types import SqlType
from lakewarden.table import Table


def matching_partitions(table: Table, predicate: str | None) -> tuple[str, ...] | None:
    """The partitions whose values meet a condition; none is asked for where there is none.

    Only values that paths tell can be asked for: any other column is refused by name.
    """
    if predicate is None or not predicate.strip():
        return None
    scheme, schema = table.config.partitions, table.schema
    columns = [
        _column(field, schema) for field in scheme.fields if field.kind is PartitionKind.SIMPLE
    ]
    meets = row_filter(predicate, columns)
    return tuple(
        path for path in table.partitions() if meets(_values(scheme.values(path), columns))
    )


def _column(field: PartitionField, schema: pa.Schema) -> Column:
    is_number = field.name in schema.names and pa.types.is_integer(schema.field(field.name).type)
    type_ = SqlType.BIGINT if is_number else SqlType.STRING
    return Column(field.name, type_, comment="", field=field.name)


def _values(texts: Mapping[str, str | None], columns: list[Column]) -> tuple[object, ...]:
    return tuple(_value(texts.get(column.name), column.type) for column in columns)


def _value(text: str | None, type_: SqlType) -> object:
    is_whole = type_ is SqlType.BIGINT and text is not None and text.lstrip("-").isdecimal()
    return int(text or "0") if is_whole else text
