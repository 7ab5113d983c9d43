"""Exact casts: values in the type of a table's column, or the first one that has no place there.

A caster never rounds, never cuts off and never reads a number out of a text.
"""

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from lakewarden.engine.formats.widening import widen
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.column_types import table_type, widened

# Digits that hold every whole number of 64 bits.
_WHOLE = pa.decimal128(19, 0)


class Misfit(Exception):
    """A value that has no place in a type."""

    def __init__(self, value: pa.Scalar, row: int | None = None) -> None:
        super().__init__(str(value))
        self.value = value
        # Its number among the rows, where it is no value inside another one.
        self.row = row


def exact(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """The values in a type that may hold them; raises `Misfit` for the first that it can't hold."""
    chunks, start = [], 0
    for chunk in column.chunks:
        try:
            chunks.append(widen(chunk, type_, _cast))
        except Misfit as misfit:
            is_plain = not types.is_nested(column.type) and misfit.row is not None
            row = start + (misfit.row or 0) if is_plain else None
            raise Misfit(misfit.value, row) from None
        start += len(chunk)
    return pa.chunked_array(chunks, type=type_)


def as_in(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    """The rows in the types of a table's columns, as far as these hold all of their values."""
    for place, name in enumerate(rows.column_names):
        known = columns.get_field_index(name)
        wanted = columns.field(known) if known >= 0 else rows.schema.field(place)
        if wanted.type == rows.schema.field(place).type:
            continue
        try:
            widened(wanted.type, table_type(rows.column(place).type, name), name)
            cast = exact(plain(rows.column(place), name), wanted.type)
        except (InvalidRequest, Misfit):
            # The writer of the values reports what is wrong, or makes the column wider.
            continue
        rows = rows.set_column(place, wanted, cast)
    return rows


def plain(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """The values of a named column in a layout that tables know."""
    nested = (types.is_struct, types.is_list, types.is_map, types.is_null)
    if any(matches(column.type) for matches in nested):
        return column
    # An unsigned number may have no place in the signed one of its width.
    own = table_type(column.type, name)
    return column if types.is_timestamp(own) else column.cast(own)


def _cast(array: pa.Array, type_: pa.DataType) -> pa.Array:
    try:
        cast = _safely(array, type_)
    except pa.ArrowInvalid:
        row = _first_failing(array, type_)
        raise Misfit(array[row], row) from None
    if types.is_floating(array.type) and types.is_floating(type_):
        # Arrow rounds these in silence.
        changed = pc.and_not(pc.not_equal(cast.cast(array.type), array), pc.is_nan(array))
        row = pc.index(changed, True).as_py()
        if row >= 0:
            raise Misfit(array[row], row)
    return cast


def _safely(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if types.is_integer(array.type) and types.is_decimal(type_):
        return array.cast(_WHOLE).cast(type_)
    return array.cast(type_)


def _first_failing(array: pa.Array, type_: pa.DataType) -> int:
    """The place of the first value that can't be cast, found by halving."""
    start, end = 0, len(array)
    while end - start > 1:
        middle = (start + end) // 2
        try:
            _safely(array.slice(start, middle - start), type_)
        except pa.ArrowInvalid:
            end = middle
        else:
            start = middle
    return start
