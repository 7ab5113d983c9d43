"""Block indexes: which block begins with which key, in one or in several levels."""

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lakewarden.engine.formats.hfile.blocks import BlockPlace
from lakewarden.engine.formats.hfile.layout import (
    CONTENT_SIZE_BYTES,
    HEADER_SIZE,
    INTERMEDIATE_INDEX,
    LEAF_INDEX,
)
from lakewarden.engine.kernel.errors import corrupt

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
