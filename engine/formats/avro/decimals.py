"""Decimals: unscaled big-endian numbers of any length, read as Arrow's little-endian words."""

import numpy as np
import pyarrow as pa

from lakewarden.engine.formats.avro.arrays import first_invalid, plain_array
from lakewarden.engine.formats.avro.arrow_types import arrow_type
from lakewarden.engine.formats.avro.types import DecimalType
from lakewarden.engine.formats.avro.window import Cursor, Integers, Mask, Window

# A number of 76 digits takes 32 bytes; the rest is for writers that pad.
MAXIMUM_SIZE = 64


def read_decimals(
    window: Window, type_: DecimalType, cursor: Cursor, used: Mask | None
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


def _fill(window: Window, cursor: Cursor, rows: Mask | slice, size: int, words: Integers) -> None:
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


def _word(window: Window, positions: Integers, size: int) -> Integers:
    """Up to eight big-endian bytes as signed numbers."""
    return window.words_at(positions).byteswap().view(np.int64) >> (64 - 8 * size)
