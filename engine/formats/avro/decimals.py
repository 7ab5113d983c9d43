"""Decimals: unscaled big-endian numbers of any length in Avro, little-endian words in Arrow."""

import numpy as np
import pyarrow as pa

from lakewarden.engine.formats.avro.arrays import first_invalid, plain_array, raw
from lakewarden.engine.formats.avro.arrow_types import arrow_type
from lakewarden.engine.formats.avro.fitting import misfit
from lakewarden.engine.formats.avro.types import DecimalType
from lakewarden.engine.formats.avro.window import Cursor, Integers, Mask, Octets, RecordWindow

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
