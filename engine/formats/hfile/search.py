"""Searching data blocks: exact keys by their bytes, prefixes by bisection over the cells."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import numpy as np

from lakewarden.engine.formats.hfile.blocks import BlockSpan
from lakewarden.engine.formats.hfile.cells import (
    CellRun,
    HFileEntries,
    broken_cell,
    cell_positions,
    cut_out,
)
from lakewarden.engine.formats.hfile.layout import (
    CELL_SIZES_BYTES,
    CELL_VERSION,
    CONTENT_OFFSET,
    CONTENT_SIZE_BYTES,
    KEY_EXTRA_BYTES,
    KEY_SUFFIX,
)
from lakewarden.engine.formats.hfile.stride import BrokenCell, Stride, cell_size

# What every key is followed by: a family of no length.
_NO_FAMILY = KEY_SUFFIX[:1]


def entries_of_keys(
    span: BlockSpan, keys: Sequence[bytes], stride: Stride, path: str
) -> Iterator[tuple[bytes, bytes]]:
    """Key and value of each cell with one of the ascending keys; several where a key repeats."""
    block, at, end = span.in_bytes()
    try:
        for key in keys:
            pattern = len(key).to_bytes(CONTENT_SIZE_BYTES, "big") + key + _NO_FAMILY
            at = _find(block, at, end, pattern, stride)
            while block.startswith(pattern, at + CELL_SIZES_BYTES, end):
                behind = at + cell_size(block, at)
                key_size = int.from_bytes(block[at : at + 4], "big")
                if behind > end or key_size != len(key) + KEY_EXTRA_BYTES:
                    raise BrokenCell
                value_start = at + CELL_SIZES_BYTES + key_size
                yield key, block[value_start : behind - len(CELL_VERSION)]
                at = behind
    except BrokenCell as cause:
        raise broken_cell(path, span.block_offset) from cause


def _find(block: bytes, at: int, end: int, pattern: bytes, stride: Stride) -> int:
    """The first cell from `at` on whose key fits the pattern; some cell before it otherwise."""
    start = at + CELL_SIZES_BYTES
    while (match := block.find(pattern, start, end)) >= 0:
        found = match - CELL_SIZES_BYTES
        at = stride.boundary(block, at, found)
        if at == found:
            break
        start = match + 1
    return at


def entries_of_prefixes(run: CellRun, prefixes: Sequence[bytes]) -> HFileEntries:
    """The cells whose keys begin with one of the prefixes."""

    def key_at(position: np.int64) -> bytes:
        start = int(position) + CONTENT_OFFSET
        size = int.from_bytes(run.buffer[start - CONTENT_SIZE_BYTES : start], "big")
        return bytes(run.buffer[start : start + size])

    positions = cell_positions(run)
    is_wanted = np.zeros(len(positions), np.bool_)
    for prefix in prefixes:
        first = bisect_left(positions, prefix, key=key_at)
        end = following(prefix)
        last = len(positions) if end is None else bisect_left(positions, end, first, key=key_at)
        is_wanted[first:last] = True
    return cut_out(run, positions[is_wanted])


def following(prefix: bytes) -> bytes | None:
    """The smallest key behind all that begin with a prefix; None when there cannot be any."""
    shortened = prefix.rstrip(b"\xff")
    return shortened[:-1] + bytes((shortened[-1] + 1,)) if shortened else None
