"""Projection: rows as a file holds them, made into rows as the table's schema wants them.

Columns are found by name; missing ones are null, narrower types are widened, nested ones follow the
same rules inside.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.kernel.errors import CorruptTable


def project(
    rows: pa.Table, target: pa.Schema, path: str, renamed: Mapping[str, str | None] | None = None
) -> pa.Table:
    """The rows in the target schema; `renamed` gives the file's name of a column it calls else."""
    if rows.schema.equals(target):
        return rows
    source_names = renamed or {}
    columns = [
        _column(rows, field, source_names.get(field.name, field.name), path) for field in target
    ]
    return pa.table(columns, schema=target)


def _column(rows: pa.Table, field: pa.Field, source: str | None, path: str) -> pa.ChunkedArray:
    if source is None or source not in rows.schema.names:
        return pa.chunked_array([pa.nulls(len(rows), field.type)])
    column = rows.column(source)
    if column.type == field.type:
        return column
    try:
        chunks = [widen(chunk, field.type) for chunk in column.chunks]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise CorruptTable(
            "unreadable_column",
            what=f"Column {field.name!r} of {path} can't be read as {field.type}.",
            why=f"The file holds {column.type}: {str(error).splitlines()[0]}.",
            now="The table's schema and this file do not belong together; check recent writes.",
            path=path,
            column=field.name,
        ) from None
    return pa.chunked_array(chunks, type=field.type)


def widen(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """An array in a wider or evolved type; struct fields are matched by name."""
    if array.type == type_:
        return array
    if pa.types.is_struct(type_) and pa.types.is_struct(array.type):
        return _widen_struct(array, type_)
    if pa.types.is_list(type_) and _is_list(array.type):
        return _widen_list(array, type_)
    if pa.types.is_map(type_) and pa.types.is_map(array.type):
        return _widen_map(array, type_)
    if pa.types.is_string(type_) and pa.types.is_boolean(array.type):
        return pc.if_else(array, "true", "false")
    return array.cast(type_)


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def _widen_struct(array: pa.StructArray, type_: pa.StructType) -> pa.StructArray:
    present = {array.type.field(number).name: number for number in range(array.type.num_fields)}
    children = []
    for number in range(type_.num_fields):
        field = type_.field(number)
        if field.name in present:
            children.append(widen(array.field(present[field.name]), field.type))
        else:
            children.append(pa.nulls(len(array), field.type))
    return pa.StructArray.from_arrays(children, fields=list(type_), mask=_null_mask(array))


def _widen_list(array: pa.ListArray, type_: pa.ListType) -> pa.ListArray:
    values = widen(array.values, type_.value_type)
    return pa.ListArray.from_arrays(_offsets(array), values, type=type_, mask=_null_mask(array))


def _widen_map(array: pa.MapArray, type_: pa.MapType) -> pa.MapArray:
    keys, items = widen(array.keys, type_.key_type), widen(array.items, type_.item_type)
    return pa.MapArray.from_arrays(_offsets(array), keys, items, type=type_, mask=_null_mask(array))


def _offsets(array: pa.ListArray | pa.MapArray) -> pa.Array:
    # A fresh copy: Arrow refuses a null mask together with offsets that are themselves a slice.
    return pa.array(np.array(array.offsets.to_numpy(), dtype=np.int32))


def _null_mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
