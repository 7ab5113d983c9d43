"""Encoded bytes by row, in pieces that follow each other within every row."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.avro.window import Integers, Mask, Octets

_NOTHING = pa.scalar(b"", pa.large_binary())


@dataclass(frozen=True, slots=True)
class Cells:
    """A piece of few bytes: a line of them for every row, of which the first `sizes` count."""

    octets: Octets
    sizes: Integers


# A piece of any number of bytes is a large binary array, in which nulls count as no bytes.
Piece: TypeAlias = Cells | pa.LargeBinaryArray


def binary(offsets: Integers, content: pa.Buffer) -> pa.LargeBinaryArray:
    """The bytes between one offset and the next, for each row."""
    buffers = [None, pa.py_buffer(offsets), content]
    return pa.Array.from_buffers(pa.large_binary(), offsets.size - 1, buffers)


def ends_of(sizes: Integers) -> Integers:
    """Offsets of bytes that follow each other."""
    offsets = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def offsets_of(one: pa.LargeBinaryArray) -> Integers:
    """The offsets of a binary array."""
    if not len(one):
        return np.zeros(1, np.int64)
    return np.frombuffer(one.buffers()[1], np.int64, len(one) + 1, one.offset * 8)


def sizes_of(pieces: Sequence[Piece], rows: int) -> Integers:
    """How many bytes each row has in all pieces together."""
    sizes = np.zeros(rows, np.int64)
    for one in pieces:
        if isinstance(one, Cells):
            sizes += one.sizes
        elif one.null_count:
            sizes += pc.fill_null(pc.binary_length(one), 0).to_numpy()
        else:
            sizes += np.diff(offsets_of(one))
    return sizes


def joined(pieces: Sequence[Piece], rows: int) -> pa.LargeBinaryArray:
    """All pieces of each row as one."""
    arrays: list[pa.LargeBinaryArray] = []
    for are_cells, group in groupby(pieces, lambda one: isinstance(one, Cells)):
        together = list(group)
        arrays += [_packed(together)] if are_cells else together
    if not arrays:
        return binary(np.zeros(rows + 1, np.int64), pa.py_buffer(b""))
    if len(arrays) == 1 and not arrays[0].null_count:
        return arrays[0]
    return pc.binary_join_element_wise(
        *arrays, _NOTHING, null_handling="replace", null_replacement=""
    )


def _packed(cells: Sequence[Cells]) -> pa.LargeBinaryArray:
    """Neighbouring cells, without the bytes that do not count."""
    octets = np.concatenate([one.octets for one in cells], axis=1)
    rows, width = octets.shape
    sizes = sizes_of(cells, rows)
    if (sizes == width).all():
        return binary(np.arange(rows + 1) * width, pa.py_buffer(octets))
    # Taking by number is several times as fast as by a mask of two dimensions.
    counted = octets.ravel()[np.flatnonzero(_counted(cells, octets.shape))]
    return binary(ends_of(sizes), pa.py_buffer(counted))


def _counted(cells: Sequence[Cells], shape: tuple[int, ...]) -> Mask:
    """Which of the bytes of neighbouring cells count."""
    counted = np.empty(shape, np.bool_)
    begin = 0
    for one in cells:
        end = begin + one.octets.shape[1]
        # Small numbers are compared many at a time, and a column at once faster than its rows.
        sizes = one.sizes.astype(np.uint16)
        for place in range(begin, end):
            counted[:, place] = sizes > place - begin
        begin = end
    return counted


def spread(one: pa.LargeBinaryArray, used: Mask) -> pa.LargeBinaryArray:
    """The rows of an array without nulls in the rows in use; no bytes in the others."""
    sizes = np.zeros(used.size, np.int64)
    sizes[used] = np.diff(offsets_of(one))
    return binary(ends_of(sizes) + offsets_of(one)[0], one.buffers()[2])


def varints(numbers: Integers, room: int = 0) -> Cells:
    """Zigzag varints behind some free room, which the sizes leave out."""
    rest = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    width = max(1, -(-int(rest.max(initial=0)).bit_length() // 7))
    octets = np.empty((numbers.size, room + width), np.uint8)
    sizes = np.ones(numbers.size, np.int64)
    for place in range(room, room + width):
        low = rest.astype(np.uint8)
        rest = rest >> np.uint64(7)
        more = rest != 0
        octets[:, place] = low & 0x7F | more.view(np.uint8) << 7
        sizes += more
    return Cells(octets, sizes)
