"""Where cells begin: proved by laying cells end to end, as fast as a regular expression runs.

Some bytes may look like a cell and be the inside of a value, so a place found by searching counts
only when whole cells from the block's start on end right before it. A cell's length depends on the
8 bytes it begins with, and a file has few different ones. Each becomes a branch of a pattern:
these 8 bytes, then that many more. Matching the pattern over and over is the walk.
"""

import re
import struct
from collections import Counter

from lakewarden.engine.formats.hfile.layout import (
    CELL_BYTES_MIN,
    CELL_EXTRA_BYTES,
    CELL_SIZES_BYTES,
    KEY_EXTRA_BYTES,
)

_SIZES = struct.Struct(">ii")
# A pattern is tried branch by branch, so it knows only the most frequent sizes.
_BRANCHES_MAX = 32
# Cells to walk in a plain loop before the pattern is made, and before each time it is made again.
_FIRST_LESSON = 64
_LAST_LESSON = 1 << 14
# Cells to walk in a plain loop, where the pattern did not know one, before it is tried again.
_PLAIN_CELLS = 8
_NOTHING = re.compile(b"")


class BrokenCell(ValueError):
    """A cell that does not fit in its block; the reader that knows the file names the place."""


class Stride:
    """Walks over cells, and learns the sizes that a file's cells have."""

    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()
        self._pattern = _NOTHING
        self._lesson = _FIRST_LESSON
        self._learned = 0

    def boundary(self, block: bytes, start: int, target: int) -> int:
        """The last place at or before `target` where a cell begins; one begins at `start`."""
        while start < target:
            matched = self._pattern.match(block, start, target)
            assert matched is not None, "the pattern also matches no cell at all"
            start = matched.end()
            for _ in range(_PLAIN_CELLS):
                if start == target:
                    break
                behind = start + cell_size(block, start)
                if behind > target:
                    return start
                self._learn(block[start : start + CELL_SIZES_BYTES])
                start = behind
        return start

    def _learn(self, sizes: bytes) -> None:
        if self._lesson > _LAST_LESSON:
            return
        self._seen[sizes] += 1
        self._learned += 1
        if self._learned == self._lesson:
            self._lesson *= 2
            self._learned = 0
            self._pattern = _pattern([most for most, _ in self._seen.most_common(_BRANCHES_MAX)])


def cell_size(block: bytes, at: int) -> int:
    """The length of the cell at a place."""
    if len(block) - at < CELL_BYTES_MIN:
        raise BrokenCell
    key_size, value_size = _SIZES.unpack_from(block, at)
    if key_size < KEY_EXTRA_BYTES or value_size < 0:
        raise BrokenCell
    size: int = CELL_EXTRA_BYTES + key_size + value_size
    return size


def _pattern(sizes: list[bytes]) -> re.Pattern[bytes]:
    branches = b"|".join(
        re.escape(size) + b".{%d}" % (cell_size(size.ljust(CELL_BYTES_MIN), 0) - CELL_SIZES_BYTES)
        for size in sizes
    )
    # Possessive: cells that were walked over are never given back.
    return re.compile(b"(?s:(?:" + branches + b")*+)")
