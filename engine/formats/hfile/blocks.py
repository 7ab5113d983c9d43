"""Blocks of one file: fetched by range, neighbours together, checked and unpacked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lakewarden.engine.formats.hfile.layout import DATA, HEADER_SIZE, Codec, parse_header
from lakewarden.engine.formats.hfile.packing import expanded_bytes_max, unpack
from lakewarden.engine.formats.range_source import RangeSource
from lakewarden.engine.kernel.errors import corrupt

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
        unpacked_bytes, bytes_max = 0, expanded_bytes_max(self._source.size)
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
