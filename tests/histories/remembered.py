"""What is known of a table in memory is not found out again while many tables are played.

A table of a history is asked a hundred times. What bytes mean does not change, so that no bytes are
decoded twice; and a table in which nothing was written, touched or removed since the last look is
as it was then. What is remembered is frozen, or copied here. Every call that a storage would see
is still made, but for those of a look at a table that has not changed.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.engine.file_groups.slices import Completions, FileGroup, Visibility
from lakewarden.engine.formats.hfile import HFile, HFileEntries
from lakewarden.engine.formats.instant_metadata.binding import InstantCodec
from lakewarden.engine.formats.log.block import Block
from lakewarden.engine.formats.log.deletes import deletes
from lakewarden.engine.formats.log.reader import RecordChoice, read_blocks, records
from lakewarden.engine.formats.properties import parse_properties
from lakewarden.engine.formats.range_source import BufferSource, FileRanges
from lakewarden.engine.metadata.encoding.records import Run, Versions, decode_runs
from lakewarden.engine.snapshot import Memory, Snapshot, load_snapshot
from lakewarden.engine.storage.memory import MemoryStorage
from lakewarden.engine.storage.port import Entry, Storage
from lakewarden.engine.timeline.instants.instant import NOTHING_SETTLED, CompletedFiles, Layout
from lakewarden.engine.timeline.timeline import ActiveTimeline, Contents, active_timeline

REMEMBERED = 2_000


@contextmanager
def remembering() -> Iterator[None]:
    """Find all out once, and by this thread alone: tables of ten rows gain nothing by more."""
    instead: dict[Any, object] = {
        parse_properties: _copied(lru_cache(REMEMBERED)(parse_properties)),
        read_blocks: _of_bytes(read_blocks),
        deletes: _by_identity(deletes),
        records: _records_by_identity(),
        active_timeline: _timelines(),
        BufferSource: _by_identity(BufferSource),
        FileRanges: _ranges_in_memory(),
        HFile: _by_identity(_RememberedHFile),
        decode_runs: _runs_by_identity(),
        load_snapshot: _unless_changed(),
    }
    threads, decode = pa.cpu_count(), InstantCodec.decode
    with ExitStack() as stack:
        for own, other in instead.items():
            _exchange(own, other)
            stack.callback(_exchange, other, own)
        stack.callback(setattr, pq, "ParquetFile", pq.ParquetFile)
        pq.ParquetFile = _parquet_files()
        stack.callback(pa.set_cpu_count, threads)
        pa.set_cpu_count(1)
        stack.callback(setattr, InstantCodec, "decode", decode)
        InstantCodec.decode = _by_content(decode)  # type: ignore[method-assign]
        yield


class _RememberedHFile(HFile):
    """A file whose answers are kept; it never changes."""

    def __init__(self, source: BufferSource, path: str, *others: Any) -> None:
        super().__init__(source, path, *others)
        self._answers: dict[object, HFileEntries] = {}

    def entries(self) -> HFileEntries:
        return self._kept("all", super().entries)

    def lookup(self, keys: Sequence[bytes]) -> HFileEntries:
        return self._kept(("keys", *keys), lambda: HFile.lookup(self, keys))

    def lookup_prefixes(self, prefixes: Sequence[bytes]) -> HFileEntries:
        return self._kept(("prefixes", *prefixes), lambda: HFile.lookup_prefixes(self, prefixes))

    def _kept(self, asked: object, ask: Callable[[], HFileEntries]) -> HFileEntries:
        if asked not in self._answers:
            self._answers[asked] = ask()
        return self._answers[asked]


class _RememberedParquet(pq.ParquetFile):
    """A file whose rows are kept as they were read."""

    def __init__(self, source: pa.NativeFile, **options: Any) -> None:
        super().__init__(source, **options)
        self._read: dict[object, pa.Table] = {}

    def read(self, columns: Sequence[str] | None = None, **options: Any) -> pa.Table:
        asked = None if columns is None else tuple(columns)
        if asked not in self._read:
            self._read[asked] = super().read(columns, **options)
        return self._read[asked]

    def read_row_groups(
        self, row_groups: Sequence[int], columns: Sequence[str] | None = None, **options: Any
    ) -> pa.Table:
        asked = (*row_groups, *(columns or ("of all",)))
        if asked not in self._read:
            self._read[asked] = super().read_row_groups(row_groups, columns, **options)
        return self._read[asked]


class _RememberedSnapshot(Snapshot):
    """A snapshot that lists its files once, as long as nothing changes."""

    def visibility(
        self, as_of: str | None = None, completions: Completions | None = None
    ) -> Visibility:
        if completions is not None:
            return super().visibility(as_of, completions)
        return self._kept(("visibility", as_of), lambda: Snapshot.visibility(self, as_of))

    def file_groups(
        self, visibility: Visibility, partitions: tuple[str, ...] | None, *, use_metadata: bool
    ) -> tuple[FileGroup, ...]:
        asked = (_Itself(visibility), partitions, use_metadata, self.storage.changes)
        return self._kept(
            asked,
            lambda: Snapshot.file_groups(self, visibility, partitions, use_metadata=use_metadata),
        )

    def _kept(self, asked: object, ask: Callable[[], Any]) -> Any:
        known = self.__dict__.setdefault("kept", {})
        if asked not in known:
            known[asked] = ask()
        return known[asked]


class _Same:
    """A value that takes no part in a comparison."""

    def __init__(self, own: Any) -> None:
        self.own = own

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same)

    def __hash__(self) -> int:
        return 0


class _Itself:
    """A value that is compared by what it is, and not by what it says; it is kept alive."""

    __slots__ = ("own",)

    def __init__(self, own: Any) -> None:
        self.own = own

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.own is self.own

    def __hash__(self) -> int:
        return id(self.own)


def _by_content(decode: Callable[..., object]) -> Callable[..., object]:
    known = lru_cache(REMEMBERED)(
        lambda schema, payload, path, codec: decode(codec.own, payload, path)
    )
    return lambda codec, payload, path: known(codec.schema, payload, path, _Same(codec))


def _copied(parsed: Callable[..., dict[str, str]]) -> Callable[..., dict[str, str]]:
    return lambda payload, path: dict(parsed(payload, path))


def _of_bytes(read: Callable[[bytes, str], object]) -> Callable[[Any, str], object]:
    """Other content, of a part of a file, is read each time."""
    known = lru_cache(REMEMBERED)(read)
    return lambda content, path: (known if isinstance(content, bytes) else read)(content, path)


def _by_identity(make: Callable[..., object]) -> Callable[..., object]:
    """Of one and the same first argument, the same is made."""
    known = lru_cache(REMEMBERED)(lambda first, *others: make(first.own, *others))
    return lambda first, *others: known(_Itself(first), *others)


def _ranges_in_memory() -> Callable[[pa.NativeFile], BufferSource | FileRanges]:
    """A file that is in memory as a whole is one source, however often it is opened."""
    known = lru_cache(REMEMBERED)(lambda address, size, buffer: BufferSource(buffer.own))

    def source(file: pa.NativeFile) -> BufferSource | FileRanges:
        if not isinstance(file, pa.BufferReader):
            return FileRanges(file)
        buffer = _all_of(file)
        return known(buffer.address, buffer.size, _Same(buffer))

    return source


def _parquet_files() -> Callable[..., pq.ParquetFile]:
    """A file that is in memory as a whole is opened once, on a reader of its own."""

    @lru_cache(REMEMBERED)
    def known(address: int, size: int, names: tuple[str, ...], others: _Same) -> pq.ParquetFile:
        buffer, options = others.own
        return _RememberedParquet(pa.BufferReader(buffer), **options)

    own = pq.ParquetFile

    def opened(source: pa.NativeFile, **options: Any) -> pq.ParquetFile:
        if not isinstance(source, pa.BufferReader):
            return own(source, **options)
        buffer = _all_of(source)
        names = (*options, *options.get("read_dictionary", ()))
        return known(buffer.address, buffer.size, names, _Same((buffer, options)))

    return opened


def _all_of(source: pa.BufferReader) -> pa.Buffer:
    """The bytes of a reader, which is at its beginning afterwards."""
    source.seek(0)
    buffer = source.read_buffer()
    source.seek(0)
    return buffer


def _records_by_identity() -> Callable[..., pa.Table]:
    @lru_cache(REMEMBERED)
    def known(block: _Itself, columns: tuple[str, ...] | None) -> pa.Table:
        return records(block.own, columns)

    def read(
        block: Block, columns: Sequence[str] | None = None, choice: RecordChoice | None = None
    ) -> pa.Table:
        if choice is not None:
            return records(block, columns, choice)
        return known(_Itself(block), None if columns is None else tuple(columns))

    return read


def _timelines() -> Callable[..., ActiveTimeline]:
    """The timeline of a listing; each look gets one of its own, for it remembers contents."""

    @lru_cache(REMEMBERED)
    def known(entries: _Itself, layout: Layout, uri: str, storage: _Same) -> ActiveTimeline:
        return active_timeline(storage.own, layout, entries.own)

    def timeline(
        storage: Storage,
        layout: Layout,
        entries: Sequence[Entry],
        settled: CompletedFiles = NOTHING_SETTLED,
        contents: Contents | None = None,
    ) -> ActiveTimeline:
        if not isinstance(storage, MemoryStorage):
            return active_timeline(storage, layout, entries, settled, contents)
        found = copy(known(_Itself(entries), layout, storage.location.uri, _Same(storage)))
        found.share_contents(contents or Contents())
        return found

    return timeline


def _runs_by_identity() -> Callable[[Sequence[Run], Sequence[str]], Versions]:
    @lru_cache(REMEMBERED)
    def known(parts: tuple[object, ...], columns: tuple[str, ...], runs: _Same) -> Versions:
        return decode_runs(runs.own, columns)

    def decoded(runs: Sequence[Run], columns: Sequence[str]) -> Versions:
        parts = tuple(_Itself(part) for run in runs for part in (run.keys, run.values))
        return known(parts, tuple(columns), _Same(runs))

    return decoded


def _unless_changed() -> Callable[..., Snapshot]:
    """The last snapshot, as long as nothing has happened to its storage."""

    @lru_cache(1)
    def known(location: object, changes: int, storage: _Same) -> Snapshot:
        found = load_snapshot(storage.own)
        return _RememberedSnapshot(found.storage, found.config, found.timeline)

    def loaded(storage: Storage, memory: Memory | None = None) -> Snapshot:
        if not isinstance(storage, MemoryStorage):
            return load_snapshot(storage, memory)
        return known(storage.location.uri, storage.changes, _Same(storage))

    return loaded


def _exchange(one: object, other: object) -> None:
    """Wherever a function was imported to."""
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith(("lakewarden", "tests.all_kinds")):
            for name, value in list(vars(module).items()):
                if value is one:
                    setattr(module, name, other)
