"""Arrow arrays of any Avro type: leaves are read as such, nested types put together around them."""

import numpy as np
import pyarrow as pa

from lakewarden.engine.formats.avro.arrays import bitmap, first_invalid, plain_array
from lakewarden.engine.formats.avro.arrow_types import arrow_type
from lakewarden.engine.formats.avro.decimals import read_decimals
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


_MILLIS_OF_DAY = 86_400_000
_TIME_LIMITS = {
    Logical.TIME_MILLIS: _MILLIS_OF_DAY,
    Logical.TIME_MICROS: _MILLIS_OF_DAY * 1000,
}


def read_leaf(
    window: RecordWindow, type_: AvroType, cursor: Cursor, used: Mask | None
) -> tuple[pa.Array, Cursor]:
    """The values of a type that holds no other type."""
    match type_:
        case PrimitiveType(primitive=Primitive.NULL):
            return pa.nulls(len(cursor)), cursor
        case PrimitiveType(primitive=Primitive.BOOLEAN):
            return _booleans(window, cursor, used)
        case PrimitiveType(primitive=Primitive.INT | Primitive.LONG):
            return _integers(window, type_, cursor, used)
        case PrimitiveType(primitive=Primitive.FLOAT | Primitive.DOUBLE):
            return _floats(window, type_, cursor, used)
        case PrimitiveType(primitive=Primitive.BYTES | Primitive.STRING):
            return _texts(window, type_, cursor, used)
        case EnumType():
            return _enums(window, type_, cursor, used)
        case FixedType():
            return _fixed(window, type_, cursor, used)
        case DecimalType():
            return read_decimals(window, type_, cursor, used)
    raise TypeError(f"{type_} is no leaf")


def _refuse(
    window: RecordWindow, wrong: Mask, used: Mask | None, cursor: Cursor, reason: str
) -> None:
    window.refuse(wrong if used is None else wrong & used, cursor, reason)


def _booleans(window: RecordWindow, cursor: Cursor, used: Mask | None) -> tuple[pa.Array, Cursor]:
    octets = window.octets[cursor.positions]
    _refuse(window, octets > 1, used, cursor, "A boolean is neither 0 nor 1.")
    bits = np.packbits(octets == 1, bitorder="little")
    after = window.moved(cursor, cursor.positions + 1, used)
    return plain_array(pa.bool_(), used, bits, len(cursor)), after


def _integers(
    window: RecordWindow, type_: PrimitiveType, cursor: Cursor, used: Mask | None
) -> tuple[pa.Array, Cursor]:
    numbers, after = window.numbers(cursor, used)
    values = numbers
    if type_.primitive is Primitive.INT:
        values = numbers.astype(np.int32)
        _refuse(window, values != numbers, used, cursor, "An int has more than 32 bits.")
    if type_.logical in _TIME_LIMITS:
        outside = (numbers < 0) | (numbers >= _TIME_LIMITS[type_.logical])
        _refuse(window, outside, used, cursor, "A time of day is outside the day.")
    return plain_array(arrow_type(type_), used, values, len(cursor)), after


def _floats(
    window: RecordWindow, type_: PrimitiveType, cursor: Cursor, used: Mask | None
) -> tuple[pa.Array, Cursor]:
    words = window.words_at(cursor.positions)
    size = 8
    if type_.primitive is Primitive.FLOAT:
        words, size = words.astype(np.uint32), 4
    after = window.moved(cursor, cursor.positions + size, used)
    return plain_array(arrow_type(type_), used, words, len(cursor)), after


def _texts(
    window: RecordWindow, type_: PrimitiveType, cursor: Cursor, used: Mask | None
) -> tuple[pa.Array, Cursor]:
    sizes, inside = window.lengths(cursor, used)
    after = Cursor(inside.positions + sizes, inside.ends)
    binary = _slices(window, inside.positions, after.positions)
    values = pa.Array.from_buffers(
        arrow_type(type_), len(cursor), [bitmap(used), *binary.buffers()[1:]]
    )
    if type_.primitive is Primitive.STRING:
        _check_utf8(window, values, inside)
    return values, after


def _slices(window: RecordWindow, starts: Integers, stops: Integers) -> pa.Array:
    """The bytes between starts and stops, copied together by Arrow.

    Starts and stops in turn are the offsets of a binary array over the window's own bytes; the
    entries with even numbers are the values, those between them the bytes skipped.
    """
    rows = starts.size
    offsets = np.empty(2 * rows + 1, np.int32)
    offsets[:-1:2] = starts
    offsets[1::2] = stops
    offsets[-1] = stops[-1] if rows else 0
    pieces = pa.Array.from_buffers(
        pa.binary(), 2 * rows, [None, pa.py_buffer(offsets), window.buffer]
    )
    return pieces.take(pa.array(np.arange(0, 2 * rows, 2, dtype=np.int32)))


def _check_utf8(window: RecordWindow, values: pa.Array, begins: Cursor) -> None:
    octets = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    if not octets.size or octets.max() < 0x80:
        return
    row = first_invalid(values)
    if row is not None:
        raise window.corrupt(int(begins.positions[row]), "A string is not UTF-8.")


def _enums(
    window: RecordWindow, type_: EnumType, cursor: Cursor, used: Mask | None
) -> tuple[pa.Array, Cursor]:
    numbers, after = window.numbers(cursor, used)
    outside = (numbers < 0) | (numbers >= len(type_.symbols))
    _refuse(window, outside, used, cursor, "An enum has no such symbol.")
    if used is not None:
        numbers = np.where(used, numbers, 0)
    indices = plain_array(pa.int64(), used, numbers, len(cursor))
    return pa.array(type_.symbols, pa.string()).take(indices), after


def _fixed(
    window: RecordWindow, type_: FixedType, cursor: Cursor, used: Mask | None
) -> tuple[pa.Array, Cursor]:
    after = window.moved(cursor, cursor.positions + type_.size, used)
    filled = slice(None) if used is None else used
    # Rows not in use still take their room in a column of fixed width.
    room = np.zeros((len(cursor), type_.size), np.uint8)
    room[filled] = window.octets[cursor.positions[filled, np.newaxis] + np.arange(type_.size)]
    return plain_array(arrow_type(type_), used, room, len(cursor)), after
