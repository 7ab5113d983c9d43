"""Encoded bytes by row: binary arrays that hold, for every row, one piece of its bytes."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.avro.window import Integers, Mask, Octets

_NOTHING = pa.scalar(b"", pa.large_binary())


def packed(octets: Octets, sizes: Integers) -> pa.Array:
    """The first `sizes` bytes of each row."""
    rows, width = octets.shape
    if (sizes == width).all():
        return piece(np.arange(rows + 1) * width, pa.py_buffer(np.ascontiguousarray(octets)))
    counted = octets[np.arange(width) < sizes[:, np.newaxis]]
    return piece(ends_of(sizes), pa.py_buffer(counted))


def piece(offsets: Integers, content: pa.Buffer) -> pa.Array:
    """The bytes between one offset and the next, for each row."""
    buffers = [None, pa.py_buffer(offsets), content]
    return pa.Array.from_buffers(pa.large_binary(), offsets.size - 1, buffers)


def ends_of(sizes: Integers) -> Integers:
    """Offsets of pieces that follow each other."""
    offsets = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def offsets_of(one: pa.Array) -> Integers:
    """The offsets of a piece."""
    if not len(one):
        return np.zeros(1, np.int64)
    return np.frombuffer(one.buffers()[1], np.int64, len(one) + 1, one.offset * 8)


def sizes_of(pieces: Sequence[pa.Array], rows: int) -> Integers:
    """How many bytes each row has in all pieces together."""
    sizes = np.zeros(rows, np.int64)
    for one in pieces:
        if one.null_count:
            sizes += pc.fill_null(pc.binary_length(one), 0).to_numpy()
        else:
            sizes += np.diff(offsets_of(one))
    return sizes


def joined(pieces: Sequence[pa.Array], rows: int) -> pa.Array:
    """One piece out of several; nulls count as no bytes."""
    if not pieces:
        return piece(np.zeros(rows + 1, np.int64), pa.py_buffer(b""))
    return pc.binary_join_element_wise(
        *pieces, _NOTHING, null_handling="replace", null_replacement=""
    )


def spread(one: pa.Array, used: Mask) -> pa.Array:
    """The piece's rows in the rows in use; no bytes in the others."""
    sizes = np.zeros(used.size, np.int64)
    sizes[used] = np.diff(offsets_of(one))
    return piece(ends_of(sizes) + offsets_of(one)[0], one.buffers()[2])


def varints(numbers: Integers, room: int = 0) -> tuple[Octets, Integers]:
    """Zigzag varints, one in each row behind some free room, and the sizes without it."""
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
    return octets, sizes
