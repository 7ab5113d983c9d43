"""The cells of data blocks: walked over in lock step, cut out as Arrow keys and values.

A cell tells its own length, so the next one is found only from the one before. Walking over many
blocks at once hides that: the n-th cells of all blocks are one step of a few vector operations.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.formats.hfile.blocks import (
    CELL_BYTES_MIN,
    CELL_EXTRA_BYTES,
    CELL_SIZES_BYTES,
    CONTENT_OFFSET,
    KEY_EXTRA_BYTES,
    BlockSpan,
)
from lakewarden.engine.kernel.errors import CorruptTable, corrupt

Positions = npt.NDArray[np.int64]

# With fewer blocks than this a plain loop takes less time than steps of vector operations.
_LOCK_STEP_BLOCKS_MIN = 64
_SIZES = struct.Struct(">ii")
_LOW_HALF = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class HFileEntries:
    """Keys and values in file order, both `pa.large_binary()`."""

    keys: pa.LargeBinaryArray
    values: pa.LargeBinaryArray

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, slots=True)
class CellRun:
    """The contents of some data blocks within one buffer, in file order."""

    path: str
    buffer: bytes | memoryview = field(repr=False)
    starts: Positions
    ends: Positions
    block_offsets: Positions

    def broken(self, position: int) -> CorruptTable:
        """The error for an impossible position of a cell."""
        block = int(np.searchsorted(self.starts, position, "right")) - 1
        return broken_cell(self.path, int(self.block_offsets[block]))


def broken_cell(path: str, block_offset: int) -> CorruptTable:
    """The error for a cell that does not fit in its block."""
    return corrupt(path, block_offset, "A cell of this data block is longer than its room.")


def cell_run(spans: Sequence[BlockSpan], path: str) -> CellRun:
    """Blocks as one run; copied only when they do not lie in the same bytes already."""
    offsets = np.array([span.block_offset for span in spans], np.int64)
    buffer = spans[0].buffer if spans else b""
    if all(span.buffer is buffer for span in spans):
        starts = np.array([span.start for span in spans], np.int64)
        ends = np.array([span.end for span in spans], np.int64)
    else:
        views = [memoryview(span.buffer)[span.start : span.end] for span in spans]
        ends = np.cumsum([len(view) for view in views], dtype=np.int64)
        starts = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
        buffer = b"".join(views)
    return CellRun(path, buffer, starts, ends, offsets)


def cell_positions(run: CellRun) -> Positions:
    """Where the cells of a run begin, in order; cells fill their blocks exactly."""
    filled = run.starts < run.ends
    positions, ends = run.starts[filled], run.ends[filled]
    if np.any(ends - positions < CELL_BYTES_MIN):
        raise run.broken(int(positions[ends - positions < CELL_BYTES_MIN][0]))
    steps: list[Positions] = []
    while len(positions) >= _LOCK_STEP_BLOCKS_MIN:
        steps.append(positions)
        positions, ends = _next_cells(run, positions, ends)
    for position, end in zip(positions.tolist(), ends.tolist(), strict=True):
        steps.append(_walk_alone(run, position, end))
    # Each step is in order already, which a merging sort makes use of.
    return np.sort(np.concatenate(steps), kind="stable") if steps else positions


def _next_cells(run: CellRun, positions: Positions, ends: Positions) -> tuple[Positions, Positions]:
    """The cells behind those at `positions`, without the blocks that end there."""
    sizes = _sizes_at(run, positions)
    # Unsigned, so that no cell is shorter than its frame and the walk always goes forward.
    lengths = sizes >> 32
    sizes &= _LOW_HALF
    lengths += sizes
    lengths += CELL_EXTRA_BYTES
    behind = positions + lengths.view(np.int64)
    room = ends - behind
    is_last = room < CELL_BYTES_MIN
    if not is_last.any():
        return behind, ends
    if room[is_last].any():
        raise run.broken(int(positions[is_last & (room != 0)][0]))
    return behind[~is_last], ends[~is_last]


def _walk_alone(run: CellRun, start: int, end: int) -> Positions:
    positions = []
    position = start
    unpack = _SIZES.unpack_from
    while position != end:
        if end - position < CELL_BYTES_MIN:
            raise run.broken(start)
        positions.append(position)
        key_size, value_size = unpack(run.buffer, position)
        if key_size < KEY_EXTRA_BYTES or value_size < 0:
            raise run.broken(start)
        position += CELL_EXTRA_BYTES + key_size + value_size
    return np.array(positions, np.int64)


def _sizes_at(run: CellRun, positions: Positions) -> npt.NDArray[np.uint64]:
    """Key size in the upper, value size in the lower half, for each cell."""
    # Every 8 bytes of the buffer as a number, overlapping; only those asked for are ever read.
    windows: npt.NDArray[np.uint64] = np.ndarray(
        (len(run.buffer) - CELL_SIZES_BYTES + 1,), ">u8", run.buffer, 0, (1,)
    )
    return windows[positions].astype(np.uint64)


def cut_out(run: CellRun, positions: Positions) -> HFileEntries:
    """The cells at some positions of a run, in ascending order, as Arrow arrays."""
    count = len(positions)
    if not count:
        return concatenate([])
    sizes = _sizes_at(run, positions)
    key_sizes = (sizes >> 32).view(np.int64)
    value_sizes = (sizes & _LOW_HALF).view(np.int64)
    _check_keys(run, positions, key_sizes)
    # Key, suffix, value and the rest up to the next key are four elements of one binary array over
    # the buffer; keeping every fourth one copies keys, or values, in one go.
    bounds = np.empty(4 * count + 1, np.int64)
    bounds[0:-1:4] = positions + CONTENT_OFFSET
    bounds[1::4] = positions + (CONTENT_OFFSET - KEY_EXTRA_BYTES) + key_sizes
    bounds[2::4] = positions + CELL_SIZES_BYTES + key_sizes
    bounds[3::4] = bounds[2::4] + value_sizes
    bounds[-1] = bounds[-2]
    parts = pa.Array.from_buffers(
        pa.large_binary(), 4 * count, [None, pa.py_buffer(bounds), pa.py_buffer(run.buffer)]
    )
    return HFileEntries(*(parts.filter(pa.array(_every_fourth(first, count))) for first in (0, 2)))


def _check_keys(run: CellRun, positions: Positions, key_sizes: Positions) -> None:
    octets = np.frombuffer(run.buffer, np.uint8)
    contents = octets[positions + CELL_SIZES_BYTES].astype(np.int64) << 8
    contents |= octets[positions + CELL_SIZES_BYTES + 1]
    is_wrong = contents != key_sizes - KEY_EXTRA_BYTES
    if is_wrong.any():
        raise run.broken(int(positions[is_wrong][0]))


def _every_fourth(first: int, count: int) -> npt.NDArray[np.bool_]:
    mask = np.zeros((count, 4), np.bool_)
    mask[:, first] = True
    return mask.ravel()


def concatenate(parts: Sequence[HFileEntries]) -> HFileEntries:
    """Entries one after the other."""
    if len(parts) == 1:
        return parts[0]
    nothing = pa.array([], pa.large_binary())
    return HFileEntries(
        pa.concat_arrays([nothing, *(part.keys for part in parts)]),
        pa.concat_arrays([nothing, *(part.values for part in parts)]),
    )
