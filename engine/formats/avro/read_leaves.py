"""Arrow arrays of plain values, read for all rows in one go.

Each reader takes a cursor and the rows in use (`None` for all) and gives an array with a place for
every row, null where not in use, and the cursor behind the values.
"""

import numpy as np
import pyarrow as pa

from lakewarden.engine.formats.avro.arrays import bitmap, first_invalid, plain_array
from lakewarden.engine.formats.avro.arrow_types import arrow_type
from lakewarden.engine.formats.avro.decimals import read_decimals
from lakewarden.engine.formats.avro.types import (
    AvroType,
    DecimalType,
    EnumType,
    FixedType,
    Logical,
    Primitive,
    PrimitiveType,
)
from lakewarden.engine.formats.avro.window import Cursor, Integers, Mask, RecordWindow

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
