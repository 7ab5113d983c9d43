"""Checked reads for many records at once: some bytes, and where each record stands in them.

Arrow arrays put together from numpy values.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.kernel.errors import CorruptTable, corrupt

Integers: TypeAlias = npt.NDArray[np.int64]
Octets: TypeAlias = npt.NDArray[np.uint8]
Words: TypeAlias = npt.NDArray[np.uint64]
Mask: TypeAlias = npt.NDArray[np.bool_]

# One step reads at most this far beyond a position, so after the last record there must be as many
# bytes of something. What is read there never counts: every step ends within its record.
PADDING = 32
# Arrow's offsets have 32 bits.
MAXIMUM_WINDOW = 2**31 - 1 - PADDING

_HIGH_BITS = np.uint64(0x8080_8080_8080_8080)
_LOW_BITS = np.uint64(0x7F7F_7F7F_7F7F_7F7F)
# Each round closes the gap between neighbours: 7-bit groups to 14, to 28, to 56 bits.
_CLOSING_ROUNDS = (
    (np.uint64(0x007F_007F_007F_007F), np.uint64(0x7F00_7F00_7F00_7F00), np.uint64(1)),
    (np.uint64(0x0000_3FFF_0000_3FFF), np.uint64(0x3FFF_0000_3FFF_0000), np.uint64(2)),
    (np.uint64(0x0000_0000_0FFF_FFFF), np.uint64(0x0FFF_FFFF_0000_0000), np.uint64(4)),
)
_ONE = np.uint64(1)


class Crowded(Exception):
    """The records of a window unfold to more values than should be in memory at once."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where each row stands, and where the record it belongs to ends."""

    positions: Integers
    ends: Integers

    def __len__(self) -> int:
        return self.positions.size

    def only(self, rows: Mask | Integers) -> "Cursor":
        """The cursor of some of the rows."""
        return Cursor(self.positions[rows], self.ends[rows])


class RecordWindow:
    """Some consecutive records of a file; positions count from its first byte."""

    def __init__(
        self, content: Octets, start: int, end: int, path: str, *, origin: int = 0
    ) -> None:
        self._origin = origin + start
        self._path = path
        octets = content[start : end + PADDING]
        if octets.size < end - start + PADDING:
            octets = np.concatenate([content[start:end], np.zeros(PADDING, np.uint8)])
        self.octets: Octets = octets
        self.size = end - start
        # Eight bytes from any position on; the view overlaps itself and copies nothing.
        self._words: Words = np.ndarray((octets.size - 7,), "<u8", octets, strides=(1,))

    @property
    def buffer(self) -> pa.Buffer:
        """The bytes, for Arrow to copy values from."""
        return pa.py_buffer(self.octets)

    def corrupt(self, position: int, reason: str) -> CorruptTable:
        """The error for bad bytes at a position of this window."""
        return corrupt(self._path, self._origin + position, reason)

    def refuse(self, bad: Mask, cursor: Cursor, reason: str) -> None:
        """Raise at the first row that is marked bad."""
        if bad.any():
            raise self.corrupt(int(cursor.positions[int(bad.argmax())]), reason)

    def words_at(self, positions: Integers) -> Words:
        """The eight bytes from each position on, the first one lowest."""
        return self._words[positions]

    def moved(self, cursor: Cursor, positions: Integers, used: Mask | None = None) -> Cursor:
        """The cursor after a step; rows not in use stay where they are."""
        if used is not None:
            positions = np.where(used, positions, cursor.positions)
        self.refuse(positions > cursor.ends, cursor, "A value runs over the end of its record.")
        return Cursor(positions, cursor.ends)

    def numbers(self, cursor: Cursor, used: Mask | None = None) -> tuple[Integers, Cursor]:
        """Zigzag varints, and the cursor behind them; what rows not in use get is arbitrary."""
        first = self.octets[cursor.positions]
        if not first.size or first.max() < 0x80:
            values = _unfolded(first.astype(np.uint64))
            return values, self.moved(cursor, cursor.positions + 1, used)
        words = self.words_at(cursor.positions)
        stops = ~words & _HIGH_BITS
        # All bits below the one that ends the number, or all there are if none of the eight does.
        below = (stops & (~stops + _ONE)) - _ONE
        sizes = (bits_of(below) >> 3).astype(np.int64) + 1
        folded = _closed(words & below & _LOW_BITS)
        unfinished = stops == 0
        if used is not None:
            unfinished &= used
        if unfinished.any():
            self._finish(cursor, np.flatnonzero(unfinished), folded, sizes)
        return _unfolded(folded), self.moved(cursor, cursor.positions + sizes, used)

    def lengths(self, cursor: Cursor, used: Mask | None = None) -> tuple[Integers, Cursor]:
        """The length in front of each value, and the cursor behind it; zero in rows not in use."""
        sizes, inside = self.numbers(cursor, used)
        if used is not None:
            sizes = np.where(used, sizes, 0)
        wrong = (sizes < 0) | (sizes > inside.ends - inside.positions)
        self.refuse(wrong, cursor, "A length does not fit in its record.")
        return sizes, inside

    def _finish(self, cursor: Cursor, rows: Integers, folded: Words, sizes: Integers) -> None:
        """Add what the ninth and tenth byte of long numbers hold."""
        positions = cursor.positions[rows]
        ninth = self.octets[positions + 8].astype(np.uint64)
        tenth = np.where(ninth < 0x80, 0, self.octets[positions + 9]).astype(np.uint64)
        self.refuse(tenth > 1, cursor.only(rows), "A number has more than 64 bits.")
        folded[rows] |= ((ninth & np.uint64(0x7F)) << np.uint64(56)) | (tenth << np.uint64(63))
        sizes[rows] += ninth >= 0x80


def _closed(groups: Words) -> Words:
    """Eight groups of seven bits, each in a byte of its own, moved together."""
    for keep, shift, gap in _CLOSING_ROUNDS:
        groups = (groups & keep) | ((groups & shift) >> gap)
    return groups


def _unfolded(folded: Words) -> Integers:
    """Zigzag undone: the halved number, its bits turned over where it was odd."""
    return ((folded >> _ONE) ^ -(folded & _ONE)).view(np.int64)


def counted_bits(words: Words) -> Integers:
    """How many bits are set in each word, where numpy 1 cannot say."""
    octets = np.ascontiguousarray(words).view(np.uint8).reshape(-1, words.itemsize)
    counts: Integers = np.unpackbits(octets, axis=1).sum(axis=1, dtype=np.int64)
    return counts


bits_of: Callable[[Words], npt.NDArray[np.integer]] = getattr(np, "bitwise_count", counted_bits)


_Scalar = TypeVar("_Scalar", bound=np.generic)


def bitmap(used: Mask | None) -> pa.Buffer | None:
    """Arrow's form of the rows that hold a value; `None` if all do."""
    return None if used is None else pa.py_buffer(np.packbits(used, bitorder="little"))


def plain_array(
    type_: pa.DataType, used: Mask | None, values: npt.NDArray[np.generic], length: int
) -> pa.Array:
    """An array of a type of fixed width; rows not in use are null, whatever their value."""
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(type_, length, [bitmap(used), buffer])


def raw(values: pa.Array, dtype: type[_Scalar], width: int) -> npt.NDArray[_Scalar]:
    """The values of a type of fixed width as rows of numbers; those for nulls are arbitrary."""
    if not len(values):
        # Arrow need not keep a buffer for no values, whatever their offset.
        return np.zeros((0, width), dtype)
    begin = np.dtype(dtype).itemsize * width * values.offset
    numbers = np.frombuffer(values.buffers()[1], dtype, len(values) * width, begin)
    return numbers.reshape(-1, width)


def first_invalid(values: pa.Array) -> int | None:
    """The first row whose value is not allowed in its type; `None` if all are."""
    if _is_valid(values):
        return None
    return next((row for row in range(len(values)) if not _is_valid(values.slice(row, 1))), 0)


def _is_valid(values: pa.Array) -> bool:
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
