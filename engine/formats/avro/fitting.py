"""Arrow arrays made to fit an Avro type: the width and layout may change, a value never does.

Decimals: unscaled big-endian numbers of any length in Avro, little-endian words in Arrow.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyarrow import types

from lakewarden.engine.formats.avro.arrow_types import arrow_type
from lakewarden.engine.formats.avro.types import (
    AvroType,
    DecimalType,
    EnumType,
    FixedType,
    Logical,
    Primitive,
    PrimitiveType,
)
from lakewarden.engine.formats.avro.window import (
    Cursor,
    Integers,
    Mask,
    Octets,
    RecordWindow,
    first_invalid,
    plain_array,
    raw,
)
from lakewarden.engine.kernel.errors import InvalidRequest

_TEXTS = (pa.string(), pa.large_string(), pa.string_view())
_BINARIES = (pa.binary(), pa.large_binary(), pa.binary_view())
_NUMBERS: dict[Primitive, Callable[[pa.DataType], bool]] = {
    Primitive.BOOLEAN: types.is_boolean,
    Primitive.INT: types.is_integer,
    Primitive.LONG: types.is_integer,
    # A wider float would be rounded.
    Primitive.FLOAT: lambda type_: type_ in (pa.float16(), pa.float32()),
    Primitive.DOUBLE: types.is_floating,
}


def fitted(array: pa.Array, type_: AvroType, place: str) -> pa.Array:
    """The values of a leaf in its own Arrow type; those of any length as large binary."""
    if types.is_dictionary(array.type):
        array = _unfolded(array)
    wanted = pa.large_binary() if _has_lengths(type_) else arrow_type(type_)
    if types.is_null(array.type):
        return pa.nulls(len(array), wanted)
    if not _may_come_from(array.type, type_):
        raise misfit(place, type_, f"Its type {array.type} is another one.")
    try:
        return array.cast(wanted)
    except pa.ArrowInvalid as error:
        raise misfit(place, type_, f"{error}.") from error


def misfit(place: str, type_: AvroType, why: str) -> InvalidRequest:
    """The error for values that have no place in their type."""
    return InvalidRequest(
        "value_does_not_fit",
        what=f"Column {place} does not fit the type {type_}.",
        why=why,
        now="Cast the column, or correct its values.",
        column=place,
    )


def _unfolded(array: pa.DictionaryArray) -> pa.Array:
    values = array.dictionary
    if values.type in (pa.string_view(), pa.binary_view()):
        # Arrow cannot take from views.
        values = values.cast(
            pa.large_string() if values.type == pa.string_view() else pa.large_binary()
        )
    return values.take(array.indices)


def _has_lengths(type_: AvroType) -> bool:
    match type_:
        case PrimitiveType(primitive=Primitive.BYTES | Primitive.STRING):
            return True
        case _:
            return isinstance(type_, FixedType | EnumType)


def _may_come_from(source: pa.DataType, type_: AvroType) -> bool:
    """Whether every value of the source has a meaning in the type."""
    match type_:
        case EnumType() | PrimitiveType(primitive=Primitive.STRING):
            return source in _TEXTS
        case FixedType() | PrimitiveType(primitive=Primitive.BYTES):
            return source in _BINARIES or bool(types.is_fixed_size_binary(source))
        case DecimalType():
            return bool(types.is_decimal(source))
        case PrimitiveType(primitive=primitive, logical=None):
            return primitive in _NUMBERS and _NUMBERS[primitive](source)
        case PrimitiveType(logical=Logical.DATE):
            return bool(types.is_date(source))
        case PrimitiveType(logical=Logical.TIME_MILLIS | Logical.TIME_MICROS):
            return bool(types.is_time(source))
    # A moment in time and a reading of some clock are not the same.
    has_zone = arrow_type(type_).tz is not None
    return bool(types.is_timestamp(source)) and (source.tz is not None) == has_zone


# A number of 76 digits takes 32 bytes; the rest is for writers that pad.
MAXIMUM_SIZE = 64


def read_decimals(
    window: RecordWindow, type_: DecimalType, cursor: Cursor, used: Mask | None
) -> tuple[pa.Array, Cursor]:
    """The decimals of all rows, null in rows not in use, and the cursor behind them."""
    shown = arrow_type(type_)
    words = np.zeros((len(cursor), shown.byte_width // 8), np.int64)
    if type_.fixed is not None:
        after = window.moved(cursor, cursor.positions + type_.fixed.size, used)
        _fill(window, cursor, slice(None) if used is None else used, type_.fixed.size, words)
    else:
        sizes, inside = window.lengths(cursor, used)
        after = Cursor(inside.positions + sizes, inside.ends)
        wrong = (sizes > MAXIMUM_SIZE) | ((sizes == 0) if used is None else used & (sizes == 0))
        window.refuse(wrong, cursor, "A decimal has no digits, or too many.")
        for size in np.unique(sizes).tolist():
            if size:
                _fill(window, inside, sizes == size, size, words)
    values = plain_array(shown, used, words, len(cursor))
    row = first_invalid(values)
    if row is not None:
        position = int(cursor.positions[row])
        raise window.corrupt(position, "A decimal has more digits than its type.")
    return values, after


def decimal_octets(
    values: pa.Array, type_: DecimalType, used: Mask | None, place: str
) -> tuple[Octets, Integers]:
    """What Avro keeps of each decimal, and how many bytes that is; nulls get any bytes."""
    low_first = raw(values, np.uint8, values.type.byte_width)
    sign = np.where(low_first[:, -1] > 0x7F, np.uint8(0xFF), np.uint8(0))
    if type_.fixed is None:
        return _shortest(low_first, sign)
    size, width = type_.fixed.size, values.type.byte_width
    too_large = (low_first[:, size:] != sign[:, np.newaxis]).any(axis=1)
    if 0 < size <= width:
        too_large |= (low_first[:, size - 1] ^ sign) > 0x7F
    if (too_large if used is None else used & too_large).any():
        raise misfit(place, type_, f"A decimal takes more than {size} bytes.")
    octets = np.empty((len(values), size), np.uint8)
    octets[:, max(size - width, 0) :] = low_first[:, :size][:, ::-1]
    octets[:, : max(size - width, 0)] = sign[:, np.newaxis]
    return octets, np.full(len(values), size)


def _shortest(low_first: Octets, sign: Octets) -> tuple[Octets, Integers]:
    """The fewest bytes with the same sign, behind their number, as Java writes them."""
    rows, width = low_first.shape
    telling = low_first != sign[:, np.newaxis]
    # One byte more if the first that tells something has another sign.
    sizes = np.where(telling.any(axis=1), width - telling[:, ::-1].argmax(axis=1), 1)
    first = low_first[np.arange(rows), sizes - 1]
    sizes += (first ^ sign) > 0x7F
    octets = np.empty((rows, 1 + width), np.uint8)
    octets[:, 0] = sizes << 1
    places = sizes[:, np.newaxis] - 1 - np.arange(width)
    octets[:, 1:] = np.take_along_axis(low_first, np.maximum(places, 0), axis=1)
    return octets, sizes + 1


def _fill(
    window: RecordWindow, cursor: Cursor, rows: Mask | slice, size: int, words: Integers
) -> None:
    """Put the numbers of some rows, all of one size, into their words, the lowest word first."""
    positions = cursor.positions[rows]
    width = words.shape[1]
    sign = np.zeros(positions.size, np.int64)
    for place in range(max(width, -(-size // 8))):
        left = size - 8 * place
        word = _word(window, positions + max(left - 8, 0), min(left, 8)) if left > 0 else sign
        if place < width:
            words[rows, place] = word
        else:
            bad = word != sign
            window.refuse(bad, Cursor(positions, positions), "A decimal is too large.")
        sign = word >> 63


def _word(window: RecordWindow, positions: Integers, size: int) -> Integers:
    """Up to eight big-endian bytes as signed numbers."""
    return window.words_at(positions).byteswap().view(np.int64) >> (64 - 8 * size)
