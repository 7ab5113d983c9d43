"""Reading HFiles, as HBase wrote them for tables of version 8 and as Hudi itself writes them.

Opening reads the trailer and what follows the data; lookups read the data blocks that can hold the
keys. Checksums are not verified: gzip blocks have their own, and Java does not verify them either.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.hfile import trailer
from lakewarden.engine.formats.hfile.blocks import (
    FILE_INFO,
    KEY_BYTES_MAX,
    META,
    RANGE_BYTES_MAX,
    ROOT_INDEX,
    TRAILER_SIZE,
    BlockCache,
    BlockReader,
    BlockSpan,
    fetch,
)
from lakewarden.engine.formats.hfile.cells import (
    HFileEntries,
    cell_positions,
    cell_run,
    concatenate,
    cut_out,
)
from lakewarden.engine.formats.hfile.index import (
    BlockIndex,
    Stride,
    check_places,
    entries_of_keys,
    entries_of_prefixes,
    following,
    parse_root,
    read_levels,
)
from lakewarden.engine.formats.hfile.trailer import parse_trailer
from lakewarden.engine.formats.range_source import RangeSource
from lakewarden.engine.kernel.caches import lazy
from lakewarden.engine.kernel.errors import InvalidRequest, corrupt

# A key and a place, as values of Python.
_INDEX_ENTRY_BYTES = 256
_LARGE = RANGE_BYTES_MAX // 2
# From so many keys on, cutting up a whole block takes less time than searching it for each of them.
_DENSE_KEYS_PER_BLOCK = 12


class HFile:
    """One HFile, open for reading; `path` names it in errors and in a shared cache."""

    def __init__(self, source: RangeSource, path: str, cache: BlockCache | None = None) -> None:
        self.path = path
        self._tail = max(source.size - TRAILER_SIZE, 0)
        raw = bytes(fetch(source, path, self._tail, source.size - self._tail))
        self._trailer = parse_trailer(raw, source.size, path)
        self._blocks = BlockReader(source, path, self._trailer.codec, cache or BlockCache())
        self._stride = Stride()
        self._load()

    @property
    def entry_count(self) -> int:
        """How many entries the trailer speaks of."""
        return self._trailer.entry_count

    @property
    def index_bytes(self) -> int:
        """About how much memory the index of the data blocks takes once it was needed."""
        return _INDEX_ENTRY_BYTES * self._trailer.data_index_count

    @property
    def schema_text(self) -> str:
        """The Avro schema of the values."""
        schema = self.info(trailer.SCHEMA)
        if schema is None:
            raise corrupt(self.path, self._trailer.file_info_offset, "The file has no schema.")
        try:
            return schema.decode()
        except UnicodeDecodeError as cause:
            raise corrupt(
                self.path, self._trailer.file_info_offset, "The schema is not UTF-8."
            ) from cause

    def info(self, name: str) -> bytes | None:
        """A value of the file info."""
        return self._info.get(name)

    def meta(self, name: str) -> bytes | None:
        """The content of a meta block."""
        place = self._meta_places.get(name.encode())
        return None if place is None else self._blocks.content(place, META)

    def entries(self) -> HFileEntries:
        """All entries."""
        parts = concatenate(list(self.batches()))
        if len(parts) != self.entry_count:
            raise corrupt(
                self.path,
                self._tail,
                f"The file has {len(parts)} entries, and {self.entry_count} by its trailer.",
            )
        return parts

    def batches(self) -> Iterator[HFileEntries]:
        """All entries, some megabytes at a time."""
        for spans in _batches(self._blocks.data_spans(self._index.places, keep=False)):
            run = cell_run(spans, self.path)
            yield cut_out(run, cell_positions(run))

    def lookup(self, keys: Sequence[bytes]) -> HFileEntries:
        """The entries with one of the ascending keys, in key order; every entry of a key."""
        _check_ascending(keys)
        wanted = self._keys_of_blocks(keys)
        places = [self._index.places[block] for block in wanted]
        spans = self._blocks.data_spans(places, keep=True)
        found = [
            entry
            for span, block_keys in zip(spans, wanted.values(), strict=True)
            for entry in entries_of_keys(span, block_keys, self._stride, self.path)
        ]
        return HFileEntries(
            pa.array([key for key, _ in found], pa.large_binary()),
            pa.array([value for _, value in found], pa.large_binary()),
        )

    def matching(self, keys: pa.LargeBinaryArray) -> HFileEntries:
        """The entries with one of the distinct keys, which are in any order; in key order.

        The fastest way for many keys, and for few.
        """
        if len(keys) < _DENSE_KEYS_PER_BLOCK * len(self._index.places):
            return self.lookup(keys.sort().to_pylist())
        return concatenate([_only(batch, keys) for batch in self.batches()])

    def lookup_prefixes(self, prefixes: Sequence[bytes]) -> HFileEntries:
        """The entries whose key begins with one of the ascending prefixes, each once."""
        _check_ascending(prefixes)
        places = [self._index.places[block] for block in self._blocks_of_prefixes(prefixes)]
        runs = (
            cell_run(spans, self.path)
            for spans in _batches(self._blocks.data_spans(places, keep=True))
        )
        return concatenate([entries_of_prefixes(run, prefixes) for run in runs])

    def _keys_of_blocks(self, keys: Sequence[bytes]) -> dict[int, list[bytes]]:
        """The keys that a block can hold, for each block that can hold some, in file order."""
        wanted: dict[int, list[bytes]] = {}
        first_keys, block = self._index.first_keys, 0
        for key in dict.fromkeys(keys):
            block = bisect_right(first_keys, key, block)
            if block and len(key) <= KEY_BYTES_MAX:
                wanted.setdefault(block - 1, []).append(key)
        return wanted

    def _blocks_of_prefixes(self, prefixes: Sequence[bytes]) -> list[int]:
        """The blocks that can hold keys with one of the prefixes, in file order."""
        first_keys = self._index.first_keys
        wanted: dict[int, None] = {}
        for prefix in prefixes:
            first = max(bisect_right(first_keys, prefix) - 1, 0)
            end = following(prefix)
            last = len(first_keys) if end is None else bisect_left(first_keys, end)
            wanted.update(dict.fromkeys(range(first, last)))
        return sorted(wanted)

    @lazy
    def _index(self) -> BlockIndex:
        """The index of the data blocks; parts of it below the root are read when first needed."""
        return read_levels(
            *self._root,
            self._trailer.index_levels,
            self._blocks.content,
            self._trailer.load_on_open_offset,
            self.path,
        )

    def _load(self) -> None:
        """Read the section between data and trailer: data index, meta index, file info."""
        start = self._trailer.load_on_open_offset
        blocks = self._blocks.contents(self._blocks.fetch(start, self._tail - start), start)
        root_offset, root = self._expect(ROOT_INDEX, blocks)
        meta_offset, meta = self._expect(ROOT_INDEX, blocks)
        info_offset, info = self._expect(FILE_INFO, blocks)
        self._root = parse_root(root, self._trailer.data_index_count, self.path, root_offset)
        names, places = parse_root(meta, self._trailer.meta_index_count, self.path, meta_offset)
        for place in places:
            check_places([place], self._tail, self.path)
        self._meta_places = dict(zip(names, places, strict=True))
        self._info = trailer.parse_file_info(info, self.path, info_offset)
        if not trailer.has_plain_versions(self._info):
            raise corrupt(self.path, info_offset, "The cells do not end with an empty version.")

    def _expect(self, kind: bytes, blocks: Iterator[tuple[int, bytes, bytes]]) -> tuple[int, bytes]:
        offset, found, content = next(blocks, (self._trailer.load_on_open_offset, b"", b""))
        if found != kind:
            raise corrupt(self.path, offset, f"Here should be a block of kind {kind.decode()}.")
        return offset, content


def _only(entries: HFileEntries, keys: pa.LargeBinaryArray) -> HFileEntries:
    inside = pc.is_in(entries.keys, value_set=keys)
    return HFileEntries(entries.keys.filter(inside), entries.values.filter(inside))


def _batches(spans: Iterator[BlockSpan]) -> Iterator[list[BlockSpan]]:
    """Blocks by some megabytes; one batch never spans two large ranges that were read."""
    batch: list[BlockSpan] = []
    total = 0
    for span in spans:
        size = span.end - span.start
        is_elsewhere = bool(batch) and span.buffer is not batch[-1].buffer
        if batch and (total + size > RANGE_BYTES_MAX or (is_elsewhere and total > _LARGE)):
            yield batch
            batch, total = [], 0
        batch.append(span)
        total += size
    if batch:
        yield batch


def _check_ascending(keys: Sequence[bytes]) -> None:
    if any(left > right for left, right in pairwise(keys)):
        raise InvalidRequest(
            "unsorted_keys",
            what="The keys to look up in an HFile are not in ascending order.",
            why="The lookup reads the file once, from front to back.",
            now="Sort them by their bytes.",
        )
