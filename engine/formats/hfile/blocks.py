"""Blocks of one file: fetched by range, neighbours together, checked and unpacked.

The frame of an HFile: magics, block headers, and the numbers that readers and writers share.

A file is data blocks, then meta blocks, then what is loaded on opening (data index, meta index,
file info), then the trailer. Every integer is big-endian.

Packing of blocks: gzip by Intel's library where there is one, by the standard one elsewhere.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from types import ModuleType

from lakewarden.engine.formats.range_source import RangeSource
from lakewarden.engine.kernel.errors import InvalidRequest, corrupt

DATA = b"DATABLK*"
LEAF_INDEX = b"IDXLEAF2"
INTERMEDIATE_INDEX = b"IDXINTE2"
ROOT_INDEX = b"IDXROOT2"
META = b"METABLKc"
FILE_INFO = b"FILEINF2"
TRAILER = b'TRABLK"$'

TRAILER_SIZE = 4096
MAJOR_VERSION = 3
BYTES_PER_CHECKSUM = 16384
NO_CHECKSUM = 0
NO_OFFSET = -1

# Magic, size on disk behind the header, size when unpacked, offset of the previous block of the
# kind, checksum type, bytes per checksum, size on disk with the header and without the checksums.
_HEADER = struct.Struct(">8siiqbii")
HEADER_SIZE = _HEADER.size

# A cell of a data block: int32 key and value sizes, then the key (int16 size, content, and a suffix
# that is the same in every cell: no family, the highest timestamp, type Put), the value, a version.
KEY_SUFFIX = b"\x00\x7f\xff\xff\xff\xff\xff\xff\xff\x04"
CELL_VERSION = b"\x00"
CELL_SIZES_BYTES = 8
CONTENT_SIZE_BYTES = 2
CONTENT_OFFSET = CELL_SIZES_BYTES + CONTENT_SIZE_BYTES
# What a key has besides its content, and what a cell has besides key content and value.
KEY_EXTRA_BYTES = CONTENT_SIZE_BYTES + len(KEY_SUFFIX)
CELL_EXTRA_BYTES = CELL_SIZES_BYTES + len(CELL_VERSION)
CELL_BYTES_MIN = CELL_EXTRA_BYTES + KEY_EXTRA_BYTES
# The longest key whose length fits in the int16 before it.
KEY_BYTES_MAX = (1 << 15) - 1


class Codec(IntEnum):
    """How the blocks of a file are packed, by the number in its trailer."""

    GZIP = 1
    NONE = 2


# Codecs of HBase that Hudi never chooses.
_OTHER_CODECS = {0: "LZO", 3: "SNAPPY", 4: "LZ4", 5: "BZIP2", 6: "ZSTD"}


def codec_of(number: int, path: str, offset: int) -> Codec:
    """The codec with a number; those that HBase has besides ours are refused by name."""
    if number in _OTHER_CODECS:
        name = _OTHER_CODECS[number]
        raise InvalidRequest(
            "unsupported_hfile_codec",
            what=f"{path} is compressed with {name}.",
            why="Hudi's HFiles use GZIP or no compression.",
            now="Write the file again with hoodie.hfile.compression.algorithm=GZ.",
            path=path,
            codec=name,
        )
    try:
        return Codec(number)
    except ValueError as cause:
        raise corrupt(path, offset, f"There is no HFile codec {number}.") from cause


@dataclass(frozen=True, slots=True)
class BlockHeader:
    """The 33 bytes before a block's content."""

    kind: bytes
    packed_bytes: int
    unpacked_bytes: int
    checksum_bytes: int

    @property
    def block_bytes(self) -> int:
        """From this header to the next."""
        return HEADER_SIZE + self.packed_bytes + self.checksum_bytes


def parse_header(raw: bytes | memoryview, at: int, path: str, offset: int) -> BlockHeader:
    """The header at a position of `raw`; `offset` is where that is in the file."""
    if len(raw) - at < HEADER_SIZE:
        raise corrupt(path, offset, "A block header is cut off.")
    kind, behind_header, unpacked, _, _, _, framed = _HEADER.unpack_from(raw, at)
    packed = framed - HEADER_SIZE
    if unpacked < 0 or not 0 <= packed <= behind_header:
        raise corrupt(path, offset, "The sizes in a block header contradict each other.")
    return BlockHeader(kind, packed, unpacked, behind_header - packed)


def frame(kind: bytes, packed: bytes | memoryview, unpacked_bytes: int) -> tuple[bytes, bytes]:
    """What stands before and behind a block's packed content.

    Like the Java writer of Hudi: no previous offset, and empty checksum slots.
    """
    framed = HEADER_SIZE + len(packed)
    checksums = bytes(4 * -(-framed // BYTES_PER_CHECKSUM))
    header = _HEADER.pack(
        kind,
        len(packed) + len(checksums),
        unpacked_bytes,
        NO_OFFSET,
        NO_CHECKSUM,
        BYTES_PER_CHECKSUM,
        framed,
    )
    return header, checksums


gzip_library: ModuleType
try:
    from isal import isal_zlib as gzip_library
except ImportError:
    gzip_library = zlib

# A gzip stream with its own header, in zlib's counting of window bits.
_GZIP_STREAM = 31
# Each library's own scale. At level 1 Intel's packs record index entries as small as zlib's 6.
_LEVEL = 6 if gzip_library is zlib else 1

# Deflate cannot do better than 1032 to 1: what claims more is refused before any memory is taken.
DEFLATE_RATIO_MAX = 1032
_DEFLATE_SLACK = 1024
# Java's arrays end at 2 GiB; half of that is more than any block of a sane table.
BLOCK_BYTES_MAX = 1 << 30
# Only bloom filters of few values pack better, some hundred to one: each is as long as a full one.
EXPANSION_MAX = 100
BLOCK_BYTES_FREE = 16 << 20
FILE_BYTES_FREE = 64 << 20
# A filter of the default size, which has a block of its own: the fewer values it is of, the better
# it packs, and one file may hold those of thousands of files.
FILTER_BYTES_MAX = 512 << 10

_ERRORS: tuple[type[Exception], ...] = (zlib.error, gzip_library.error)


def pack(content: bytes | memoryview, codec: Codec) -> bytes | memoryview:
    """A block's content as it goes to the file."""
    if codec is Codec.NONE:
        return content
    packed: bytes = gzip_library.compress(content, _LEVEL, _GZIP_STREAM)
    return packed


def unpack(packed: bytes | memoryview, unpacked_bytes: int, path: str, offset: int) -> bytes:
    """The content of a gzip block, which is exactly as long as its header says."""
    _check_claim(len(packed), unpacked_bytes, path, offset)
    stream = gzip_library.decompressobj(_GZIP_STREAM)
    try:
        # One byte more than promised shows a longer block, and lets the stream check its end.
        content: bytes = stream.decompress(packed, unpacked_bytes + 1)
    except _ERRORS as cause:
        raise corrupt(path, offset, f"A block does not unpack: {cause}.") from cause
    if len(content) != unpacked_bytes or not stream.eof:
        raise corrupt(path, offset, "A block unpacks to another size than its header says.")
    return content


def expanded_bytes_max(packed_bytes: int, blocks_count: int) -> int:
    """How much some blocks may unpack to in all, so that a small file takes no large memory."""
    return max(packed_bytes * EXPANSION_MAX, FILE_BYTES_FREE, blocks_count * FILTER_BYTES_MAX)


def _check_claim(packed_bytes: int, unpacked_bytes: int, path: str, offset: int) -> None:
    possible = packed_bytes * DEFLATE_RATIO_MAX + _DEFLATE_SLACK
    likely = max(packed_bytes * EXPANSION_MAX, BLOCK_BYTES_FREE)
    if unpacked_bytes > min(possible, BLOCK_BYTES_MAX, likely):
        raise corrupt(path, offset, f"A block claims to unpack to {unpacked_bytes} bytes.")


DEFAULT_CACHE_BYTES = 32 << 20


class BlockCache:
    """Keeps the blocks asked for last, by path and offset.

    One cache may serve many files, as long as their paths differ. Blocks live in two generations:
    when the young one has half the bytes, it becomes the old one and the old one is forgotten. So
    a block asked for again within a generation stays, and nothing is ever sorted or counted.
    """

    def __init__(self, limit_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        self._generation_bytes = limit_bytes // 2
        self._young: dict[tuple[str, int], bytes] = {}
        self._old: dict[tuple[str, int], bytes] = {}
        self._young_bytes = 0

    def get(self, path: str, offset: int) -> bytes | None:
        """The unpacked block at an offset of a file, if it is still here."""
        key = (path, offset)
        content = self._young.get(key)
        if content is None:
            content = self._old.get(key)
            if content is not None:
                self.put(path, offset, content)
        return content

    def put(self, path: str, offset: int, content: bytes) -> None:
        """Keep a block, unless it is larger than a generation."""
        if len(content) > self._generation_bytes:
            return
        if self._young_bytes + len(content) > self._generation_bytes:
            self._old, self._young, self._young_bytes = self._young, {}, 0
        self._young[path, offset] = content
        self._young_bytes += len(content)


# Neighbouring blocks are read together up to this size: large enough for any storage to be at its
# best, small enough for the allocator to reuse the memory instead of asking for fresh pages.
RANGE_BYTES_MAX = 16 << 20


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """Where a block is, with header and checksums."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class BlockSpan:
    """The unpacked content of a block, as a part of some bytes that may hold its neighbours too."""

    buffer: bytes | memoryview = field(repr=False)
    start: int
    end: int
    block_offset: int

    @property
    def content(self) -> bytes:
        """The content alone; copied unless it is all that the buffer holds."""
        return bytes(self.buffer[self.start : self.end])

    def in_bytes(self) -> tuple[bytes, int, int]:
        """The content as a part of bytes, which can be searched, and where it begins and ends."""
        if isinstance(self.buffer, bytes):
            return self.buffer, self.start, self.end
        return self.content, 0, self.end - self.start


class BlockReader:
    """Reads the blocks of one file."""

    def __init__(self, source: RangeSource, path: str, codec: Codec, cache: BlockCache) -> None:
        self._source = source
        self._path = path
        self._codec = codec
        self._cache = cache

    def fetch(self, offset: int, length: int) -> bytes | memoryview:
        """A range of the file, exactly."""
        return fetch(self._source, self._path, offset, length)

    def content(self, place: BlockPlace, kind: bytes) -> bytes:
        """The unpacked content of one block."""
        span = self._open(self.fetch(place.offset, place.size), 0, place.offset, kind)[0]
        return span.content

    def contents(self, raw: bytes | memoryview, offset: int) -> Iterator[tuple[int, bytes, bytes]]:
        """The blocks that lie end to end in some bytes: offset, kind and unpacked content."""
        at = 0
        while at < len(raw):
            span, size, kind = self._open(raw, at, offset + at, None)
            yield offset + at, kind, span.content
            at += size

    def data_spans(self, places: Sequence[BlockPlace], *, keep: bool) -> Iterator[BlockSpan]:
        """The contents of data blocks, which are given in file order; kept for later on demand."""
        # A block that was never packed costs no more to read again than to keep.
        cache = self._cache if keep and self._codec is not Codec.NONE else None
        kept = [cache.get(self._path, place.offset) if cache else None for place in places]
        missing = [place for place, content in zip(places, kept, strict=True) if content is None]
        fetched = self._fetched(missing)
        for place, content in zip(places, kept, strict=True):
            if content is not None:
                yield BlockSpan(content, 0, len(content), place.offset)
                continue
            span = next(fetched)
            if cache:
                cache.put(self._path, place.offset, span.content)
            yield span

    def _fetched(self, places: Sequence[BlockPlace]) -> Iterator[BlockSpan]:
        unpacked_bytes, bytes_max = 0, expanded_bytes_max(self._source.size, len(places))
        for run in _neighbours(places):
            first = run[0].offset
            raw = self.fetch(first, run[-1].end - first)
            for place in run:
                span, size, _ = self._open(raw, place.offset - first, place.offset, DATA)
                if size != place.size:
                    raise corrupt(self._path, place.offset, "The index has another block size.")
                unpacked_bytes += span.end - span.start
                if unpacked_bytes > bytes_max:
                    reason = "Its blocks unpack to more than those of a file of its size may."
                    raise corrupt(self._path, place.offset, reason)
                yield span

    def _open(
        self, raw: bytes | memoryview, at: int, offset: int, kind: bytes | None
    ) -> tuple[BlockSpan, int, bytes]:
        """The block at a position of `raw`: its content, its size on disk, its kind."""
        header = parse_header(raw, at, self._path, offset)
        if kind is not None and header.kind != kind:
            raise corrupt(self._path, offset, f"Here should be a block of kind {kind.decode()}.")
        start = at + HEADER_SIZE
        end = start + header.packed_bytes
        if at + header.block_bytes > len(raw):
            raise corrupt(self._path, offset, "A block is longer than the room it has.")
        if self._codec is Codec.NONE:
            if header.unpacked_bytes != header.packed_bytes:
                raise corrupt(self._path, offset, "A block that is not packed has two sizes.")
            return BlockSpan(raw, start, end, offset), header.block_bytes, header.kind
        content = unpack(raw[start:end], header.unpacked_bytes, self._path, offset)
        return BlockSpan(content, 0, len(content), offset), header.block_bytes, header.kind


def fetch(source: RangeSource, path: str, offset: int, length: int) -> bytes | memoryview:
    """A range of a source, exactly; a file that shrank since it was measured is corrupt."""
    raw = source.read(offset, length)
    if len(raw) != length:
        raise corrupt(path, offset + len(raw), "The file ends early.")
    return raw


def _neighbours(places: Sequence[BlockPlace]) -> Iterator[list[BlockPlace]]:
    """Blocks grouped so that each group is one range of bounded length without gaps."""
    run: list[BlockPlace] = []
    for place in places:
        if run and (place.offset != run[-1].end or place.end - run[0].offset > RANGE_BYTES_MAX):
            yield run
            run = []
        run.append(place)
    if run:
        yield run
