"""Block indexes: which block begins with which key, in one or in several levels.

Where cells begin: proved by laying cells end to end, as fast as a regular expression runs.

Some bytes may look like a cell and be the inside of a value, so a place found by searching counts
only when whole cells from the block's start on end right before it. A cell's length depends on the
8 bytes it begins with, and a file has few different ones. Each becomes a branch of a pattern:
these 8 bytes, then that many more. Matching the pattern over and over is the walk.

Searching data blocks: exact keys by their bytes, prefixes by bisection over the cells.
"""

import re
import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lakewarden.engine.formats.hfile.blocks import (
    CELL_BYTES_MIN,
    CELL_EXTRA_BYTES,
    CELL_SIZES_BYTES,
    CELL_VERSION,
    CONTENT_OFFSET,
    CONTENT_SIZE_BYTES,
    HEADER_SIZE,
    INTERMEDIATE_INDEX,
    KEY_EXTRA_BYTES,
    KEY_SUFFIX,
    LEAF_INDEX,
    BlockPlace,
    BlockSpan,
)
from lakewarden.engine.formats.hfile.cells import (
    CellRun,
    HFileEntries,
    broken_cell,
    cell_positions,
    cut_out,
)
from lakewarden.engine.kernel.errors import corrupt

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


# Offset and size of the block, and the first byte of the key's length.
_ROOT_ENTRY = struct.Struct(">qib")
_ENTRY = struct.Struct(">qi")
_COUNT = struct.Struct(">i")
# Hadoop's variable integers: a byte from here up is the value itself, one below tells how many
# bytes follow. Those further below mean negative numbers; no length is one, so any answer is wrong.
_SMALLEST_SINGLE = -112
_LONGEST_POSITIVE = -120

ReadBlock = Callable[[BlockPlace, bytes], bytes]


@dataclass(frozen=True, slots=True)
class BlockIndex:
    """Blocks in file order and a key for each: no key of it is smaller, those before all are."""

    first_keys: list[bytes]
    places: list[BlockPlace]


def parse_root(
    content: bytes, count: int, path: str, offset: int
) -> tuple[list[bytes], list[BlockPlace]]:
    """The raw keys and the places of a root index block; what follows the entries is ignored."""
    keys, places = [], []
    at = 0
    try:
        for _ in range(count):
            block_offset, size, first = _ROOT_ENTRY.unpack_from(content, at)
            at += _ROOT_ENTRY.size
            length = first
            if first < _SMALLEST_SINGLE:
                width = _SMALLEST_SINGLE - max(first, _LONGEST_POSITIVE)
                length = int.from_bytes(content[at : at + width], "big")
                at += width
            if not 0 <= length <= len(content) - at:
                raise corrupt(path, offset, "A key of an index is longer than the index.")
            keys.append(content[at : at + length])
            places.append(BlockPlace(block_offset, size))
            at += length
    except struct.error as cause:
        raise corrupt(path, offset, "An index has fewer entries than it should.") from cause
    return keys, places


def parse_leaf(
    content: bytes, count_max: int, path: str, offset: int
) -> tuple[list[bytes], list[BlockPlace]]:
    """The raw keys and the places of a leaf or intermediate index block."""
    count = int.from_bytes(content[: _COUNT.size], "big", signed=True)
    if not 0 <= count <= count_max:
        raise corrupt(path, offset, f"An index claims to have {count} entries.")
    try:
        starts = struct.unpack_from(f">{count + 1}i", content, _COUNT.size)
    except struct.error as cause:
        raise corrupt(path, offset, "An index has fewer entries than it should.") from cause
    entries = _COUNT.size * (len(starts) + 1)
    keys, places = [], []
    for start, end in pairwise(starts):
        if not 0 <= start <= end - _ENTRY.size or end > len(content) - entries:
            raise corrupt(path, offset, "An entry of an index lies outside of it.")
        places.append(BlockPlace(*_ENTRY.unpack_from(content, entries + start)))
        keys.append(content[entries + start + _ENTRY.size : entries + end])
    return keys, places


def block_index(keys: Sequence[bytes], places: list[BlockPlace], end: int, path: str) -> BlockIndex:
    """An index of blocks that lie before `end`, where the root index is, checked to be in order."""
    check_places(places, end, path)
    first_keys = [_content(key, path, end) for key in keys]
    if any(left >= right for left, right in pairwise(first_keys)):
        raise corrupt(path, end, "The keys of the block index are not in ascending order.")
    return BlockIndex(first_keys, places)


def read_levels(
    keys: Sequence[bytes],
    places: list[BlockPlace],
    levels: int,
    read: ReadBlock,
    end: int,
    path: str,
) -> BlockIndex:
    """The index of the data blocks, when the root stands some levels above it.

    Blocks of a level are in order and do not overlap, so no level is larger than the file.
    """
    for level in range(levels - 1, 0, -1):
        check_places(places, end, path)
        kind = LEAF_INDEX if level == 1 else INTERMEDIATE_INDEX
        below_keys: list[bytes] = []
        below_places: list[BlockPlace] = []
        for place in places:
            room = end // HEADER_SIZE - len(below_places)
            more_keys, more_places = parse_leaf(read(place, kind), room, path, place.offset)
            below_keys += more_keys
            below_places += more_places
        keys, places = below_keys, below_places
    return block_index(keys, places, end, path)


def check_places(places: Iterable[BlockPlace], end: int, path: str) -> None:
    """Refuse blocks that overlap, are out of order, or reach beyond `end`."""
    before = 0
    for place in places:
        if place.size < HEADER_SIZE or not before <= place.offset <= end - place.size:
            raise corrupt(path, end, f"The index names an impossible block at {place.offset}.")
        before = place.end


def _content(key: bytes, path: str, offset: int) -> bytes:
    """The content of a cell key, without its length and whatever HBase puts behind it."""
    size = int.from_bytes(key[:CONTENT_SIZE_BYTES], "big", signed=True)
    if not 0 <= size <= len(key) - CONTENT_SIZE_BYTES:
        raise corrupt(path, offset, "A key of the block index is longer than its room.")
    return key[CONTENT_SIZE_BYTES : CONTENT_SIZE_BYTES + size]


def root_index_bytes(keys: Iterable[bytes], places: Iterable[BlockPlace]) -> bytes:
    """A root index block of the given raw keys."""
    return b"".join(
        _ENTRY.pack(place.offset, place.size) + _hadoop_integer(len(key)) + key
        for key, place in zip(keys, places, strict=True)
    )


def _hadoop_integer(value: int) -> bytes:
    if value <= 127:
        return value.to_bytes(1, "big")
    octets = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return (_SMALLEST_SINGLE - len(octets)).to_bytes(1, "big", signed=True) + octets
