"""Arrow arrays of any Avro type: leaves are read as such, nested types put together around them."""

import numpy as np
import pyarrow as pa

from lakewarden.engine.formats.avro.arrays import bitmap
from lakewarden.engine.formats.avro.arrow_types import arrow_type
from lakewarden.engine.formats.avro.read_leaves import read_leaf
from lakewarden.engine.formats.avro.types import (
    NULL,
    ArrayType,
    AvroType,
    MapType,
    RecordType,
    UnionType,
    entry_type,
    weight,
)
from lakewarden.engine.formats.avro.walk import branches, find_items, moved_rows, present
from lakewarden.engine.formats.avro.window import Crowded, Cursor, Integers, Mask, RecordWindow

# An item that is null takes one byte, yet has a place in every column within its type. Only few
# records at once may unfold like that; one that goes further alone is an attack on memory.
VALUES_PER_BYTE = 16
FREE_VALUES = 1 << 25


def read_value(window: RecordWindow, type_: AvroType, cursor: Cursor) -> tuple[pa.Array, Cursor]:
    """One value of the type in every row, and the cursor behind them."""
    match type_:
        case RecordType():
            return _records(window, type_, cursor)
        case ArrayType(items=items):
            return _lists(window, type_, items, cursor)
        case MapType():
            return _lists(window, type_, entry_type(type_), cursor)
        case UnionType(optional=None):
            return _union(window, type_, cursor)
        case UnionType(optional=value):
            assert value is not None
            return _optional(window, type_, value, cursor)
        case _:
            return read_leaf(window, type_, cursor, None)


def _records(window: RecordWindow, record: RecordType, cursor: Cursor) -> tuple[pa.Array, Cursor]:
    rows, columns = len(cursor), []
    for field in record.fields:
        column, cursor = read_value(window, field.type, cursor)
        columns.append(column)
    return pa.Array.from_buffers(arrow_type(record), rows, [None], children=columns), cursor


def _lists(
    window: RecordWindow, type_: ArrayType | MapType, item_type: AvroType, cursor: Cursor
) -> tuple[pa.Array, Cursor]:
    found = find_items(window, item_type, cursor)
    values = len(found.cursor) * weight(item_type)
    if values > FREE_VALUES + VALUES_PER_BYTE * window.size:
        raise Crowded(values)
    items, behind = read_value(window, item_type, found.cursor)
    assert len(behind) == int(found.counts.sum())
    offsets = np.zeros(len(cursor) + 1, np.int32)
    np.cumsum(found.counts, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets)]
    lists = pa.Array.from_buffers(arrow_type(type_), len(cursor), buffers, children=[items])
    return lists, found.after


def _optional(
    window: RecordWindow, union: UnionType, value: AvroType, cursor: Cursor
) -> tuple[pa.Array, Cursor]:
    used, inside = present(window, union, cursor)
    if used.all():
        return read_value(window, value, inside)
    if not used.any():
        return pa.nulls(len(cursor), arrow_type(value)), inside
    if not isinstance(value, RecordType | ArrayType | MapType):
        return read_leaf(window, value, inside, used)
    values, behind = read_value(window, value, inside.only(used))
    return _spread(values, used), moved_rows(inside, used, behind)


def _union(window: RecordWindow, union: UnionType, cursor: Cursor) -> tuple[pa.Array, Cursor]:
    """A struct with a column for each branch, of which every row fills one; null has no column."""
    chosen, inside = branches(window, union, cursor)
    columns = []
    for index, branch in enumerate(union.branches):
        if branch != NULL:
            column, inside = _branch(window, branch, inside, chosen == index)
            columns.append(column)
    used = None if union.null_index is None else chosen != union.null_index
    buffers = [bitmap(used)]
    shown = arrow_type(union)
    return pa.Array.from_buffers(shown, len(cursor), buffers, children=columns), inside


def _branch(
    window: RecordWindow, branch: AvroType, cursor: Cursor, used: Mask
) -> tuple[pa.Array, Cursor]:
    if not used.any():
        return pa.nulls(len(cursor), arrow_type(branch)), cursor
    values, behind = read_value(window, branch, cursor.only(used))
    return _spread(values, used), moved_rows(cursor, used, behind)


def _spread(values: pa.Array, used: Mask) -> pa.Array:
    """The values in the rows in use, nulls in the others."""
    indices: Integers = np.cumsum(used) - 1
    buffers = [bitmap(used), pa.py_buffer(indices)]
    return values.take(pa.Array.from_buffers(pa.int64(), used.size, buffers))
