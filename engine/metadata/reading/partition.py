"""A partition of the metadata table: lookups routed to the file groups that can hold the keys.

One file group of a metadata partition: a base HFile and log blocks on top of it.

Lookups read the blocks of the base file they need; logs are small and are read whole, once.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.file_names import BaseFile, DataFile, LogFile
from lakewarden.engine.file_groups.listing import RecordedSizes, assert_whole, truncated
from lakewarden.engine.file_groups.slices import ClosedFile, ClosedFiles, FileSlice
from lakewarden.engine.formats.hashing import file_group_index
from lakewarden.engine.formats.hfile import HFile, HFileEntries
from lakewarden.engine.formats.hfile.blocks import BlockCache
from lakewarden.engine.formats.hfile.trailer import CREATED_MS
from lakewarden.engine.formats.log.block import Block, BlockKind
from lakewarden.engine.formats.log.deletes import deletes
from lakewarden.engine.formats.log.reader import effective_blocks, read_blocks
from lakewarden.engine.formats.range_source import BufferSource, FileRanges
from lakewarden.engine.metadata.encoding.records import Run, Versions, decode_runs, known_content
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.storage.side_by_side import asks_ahead, together


@dataclass(frozen=True, slots=True)
class KeySelection:
    """Which keys are wanted: all, those given, or those that begin with one of the given."""

    keys: tuple[bytes, ...] | None = None
    prefixes: tuple[bytes, ...] | None = None
    # Distinct keys in any order, which may be many.
    among: pa.LargeBinaryArray | None = None

    def of(self, file: HFile) -> HFileEntries:
        if self.keys is not None:
            return file.lookup(self.keys)
        if self.prefixes is not None:
            return file.lookup_prefixes(self.prefixes)
        if self.among is not None:
            return file.matching(self.among)
        return file.entries()


_REBUILD = (
    "Read with use_metadata=False, then create the metadata table again. Nothing was changed."
)

ALL = KeySelection()


@dataclass(frozen=True, slots=True)
class BaseMark:
    """What tells one base file of a file group from all others that it ever has.

    A name is not enough: a metadata table that is made anew begins with the same ones.
    """

    path: str
    size_bytes: int
    completed: str
    created_ms: bytes | None


# A base file of so many bytes is read whole, and kept.
_WHOLE_BYTES_MAX = 1 << 20
# An open file takes little memory, but a process may have some hundred only.
_OPEN_FILE_BYTES = 1 << 18
# What two numbers and the name of a file take.
_FACTS_BYTES = 500
_NO_BASE = BaseMark("", 0, "", None)


def exactly(keys: Sequence[str]) -> KeySelection:
    return KeySelection(keys=tuple(sorted({key.encode() for key in keys})))


def beginning_with(prefixes: Sequence[str]) -> KeySelection:
    return KeySelection(prefixes=tuple(sorted({prefix.encode() for prefix in prefixes})))


class MetadataFileGroup:
    """Reads one slice of a metadata file group; `is_valid` judges the instants of log blocks."""

    def __init__(
        self,
        storage: Storage,
        slice_: FileSlice,
        is_valid: Callable[[str], bool],
        recorded: RecordedSizes | None = None,
        completed: Callable[[str], str | None] = lambda _: None,
        closed: ClosedFiles | None = None,
        below: "Callable[[], MetadataFileGroup | None]" = lambda: None,
        cache: BlockCache | None = None,
    ) -> None:
        self._storage = storage
        self._recorded = recorded
        self._slice = slice_
        self._is_valid = is_valid
        # When an instant of the metadata table completed, if that is known.
        self._completed = completed
        self._closed = closed
        self._below = below
        self._cache = cache
        self._all: tuple[Block, ...] | None = None
        self._blocks: tuple[Block, ...] | None = None
        self._base: HFile | None = None
        # Logs that were read before they are asked for, by their names.
        self._contents: dict[str, bytes] = {}

    @property
    def storage(self) -> Storage:
        return self._storage

    def unread(self) -> Iterator[Callable[[], object]]:
        """The requests that any look at the group makes."""
        if self._slice.base_file is not None and self._base is None:
            yield self._base_file
        if self._all is None:
            for log in self._slice.log_files:
                if log.name not in self._contents and self._known(log) is None:
                    yield partial(self._read_log, log)

    @property
    def file_id(self) -> str:
        return self._slice.file_id

    @property
    def path(self) -> str:
        """The file group below the metadata table's folder."""
        return f"{self._slice.partition}/{self.file_id}"

    @property
    def base_mark(self) -> BaseMark | None:
        """The mark of the base file, also of there being none; None if nothing tells it apart."""
        base = self._slice.base_file
        if base is None:
            return _NO_BASE
        completed = self._completed(base.instant)
        # An instant that nothing is known of has no other time than its own.
        if completed is None or completed == base.instant:
            return None
        _, created_ms = self._base_facts()
        return BaseMark(self._slice.path(base), base.size_bytes, completed, created_ms)

    @property
    def below(self) -> "MetadataFileGroup | None":
        """The slice that a compaction has folded into the base file, if all of it is there."""
        return self._below()

    def counts_whole(self) -> bool:
        """Whether each block counts, as all did for the compaction that has folded the slice."""
        return all(self._is_valid(one.instant) for one in self._read_blocks())

    @property
    def base_entries(self) -> int:
        """How many entries the base file has."""
        return self._base_facts()[0]

    def _base_facts(self) -> tuple[int, bytes | None]:
        """How many entries the base file has, and when it was made; read once for each file.

        Who keeps what the file says asks for these again and again, and for nothing else.
        """
        base = self._slice.base_file
        if base is None:
            return 0, None
        identity = self._identity(base) if self._closed is not None else None
        known = None
        if self._closed is not None and identity is not None:
            known = self._closed.base_facts.get(identity)
        if known is None:
            file = self._base_file()
            known = file.entry_count, file.info(CREATED_MS)
            if self._closed is not None and identity is not None:
                self._closed.base_facts.keep(identity, known, _FACTS_BYTES)
        return known

    def runs(self, selection: KeySelection) -> list[Run]:
        """What the base file and each log block say of the selected keys, oldest first."""
        base = self.base_run(selection)
        newer = [self.run_of(block, selection) for block in self.log_blocks]
        return newer if base is None else [base, *newer]

    def base_run(self, selection: KeySelection) -> Run | None:
        """What the base file says of the selected keys; None without one."""
        return self._run(self._base_file(), selection) if self._slice.base_file else None

    def run_of(self, block: Block, selection: KeySelection) -> Run:
        """What a log block says of the selected keys."""
        if block.kind is BlockKind.DELETE:
            # Keys that were not selected do no harm: they meet no version of theirs.
            return Run(deletes(block).keys.cast(pa.large_binary()), None, "", block.path)
        path = f"{block.path} (block at {block.offset})"
        return self._run(HFile(BufferSource(block.content), path), selection)

    def entries_at_most(self) -> int:
        """The entries of the base file and of all logs, one that is in several counted in each."""
        return self.base_entries + sum(
            HFile(BufferSource(block.content), block.path).entry_count
            for block in self.log_blocks
            if block.kind is not BlockKind.DELETE
        )

    def _run(self, file: HFile, selection: KeySelection) -> Run:
        entries = selection.of(file)
        return Run(entries.keys, entries.values, file.schema_text, file.path)

    def _base_file(self) -> HFile:
        if self._base is None:
            assert self._slice.base_file is not None
            self._base = self._opened(self._slice.base_file)
        return self._base

    def _opened(self, base: BaseFile) -> HFile:
        path = self._slice.path(base)
        identity = self._identity(base) if base.size_bytes <= _WHOLE_BYTES_MAX else None
        if self._closed is None or identity is None:
            return HFile(FileRanges(self._storage.open(path)), path, self._cache)
        content = self._closed.metadata.get(identity)
        if content is None:
            content = self._read_closed(base)
        return HFile(BufferSource(content), path, self._cache)

    @property
    def held_bytes(self) -> int:
        """About how much memory takes what was read: logs, small base files, indexes of others."""
        held = sum(len(block.content) for block in self._all or ())
        if self._base is not None and self._slice.base_file is not None:
            size = self._slice.base_file.size_bytes
            held += size if size <= _WHOLE_BYTES_MAX else _OPEN_FILE_BYTES + self._base.index_bytes
        return held

    @property
    def log_blocks(self) -> tuple[Block, ...]:
        """The blocks of the logs that count, oldest first."""
        if self._blocks is None:
            # A log compaction of what is not there has nothing that is not in the base file.
            self._blocks = effective_blocks(
                self._read_blocks(), self._is_valid, keeps_orphans=False
            )
        return self._blocks

    def _read_blocks(self) -> tuple[Block, ...]:
        """All blocks of the logs, whether they count or not."""
        if self._all is None:
            self._all = tuple(self._all_blocks())
        return self._all

    def _all_blocks(self) -> Iterator[Block]:
        for log in self._slice.log_files:
            path = self._slice.path(log)
            content = self._known(log)
            if content is None:
                content = self._contents.pop(log.name, None)
            if content is None:
                content = self._read_closed(log)
            assert_whole(path, log, len(content))
            if not content:
                self._assert_nothing_lost(path, log)
            for block in read_blocks(content, path):
                if block.kind is not BlockKind.CORRUPT:
                    yield block
                elif self._recorded_bytes(path, log) > block.offset:
                    raise block.corrupt(block.reason)

    def _read_log(self, log: LogFile) -> None:
        self._contents[log.name] = self._read_closed(log)

    def _known(self, log: LogFile) -> bytes | None:
        """The content of a log that need not be read."""
        content = known_content(log)
        identity = None if self._closed is None or content is not None else self._identity(log)
        if self._closed is None or identity is None:
            return content
        return self._closed.metadata.get(identity)

    def _read_closed(self, file: DataFile) -> bytes:
        """The content of a file, which is kept if nothing can change it any more."""
        content = self._storage.read(self._slice.path(file))
        identity = None if self._closed is None else self._identity(file)
        if self._closed is not None and identity is not None and len(content) == file.size_bytes:
            self._closed.metadata.keep(identity, content, len(content))
        return content

    def _identity(self, file: DataFile) -> ClosedFile | None:
        completed = self._completed(file.instant)
        # An instant that nothing is known of has no other time than its own.
        if completed is None or completed == file.instant:
            return None
        return ClosedFile(self._slice.path(file), file.size_bytes, completed)

    def _assert_nothing_lost(self, path: str, log: LogFile) -> None:
        """A log of no bytes is what a dying writer leaves, or has lost what a completed one wrote.

        How much a log has lost that still has whole blocks is not looked into here: that takes a
        read for each deltacommit. Whatever folds logs into others does, and so does validation.
        """
        recorded_bytes = self._recorded_bytes(path, log)
        if recorded_bytes:
            raise truncated(path, recorded_bytes, 0, _REBUILD)

    def _recorded_bytes(self, path: str, log: LogFile) -> int:
        """How far completed writes reach in a log; all of it where none has recorded a size."""
        reported = None if self._recorded is None else self._recorded.of_log(path, log)
        return max(log.size_bytes, 1) if reported is None else reported


def read_ahead(groups: Sequence[MetadataFileGroup]) -> None:
    """Read side by side what some groups are read from, where that is quicker than in turn."""
    if groups and asks_ahead(groups[0].storage):
        together(groups[0].storage, [one for group in groups for one in group.unread()])


# A file group, and keys that hashing sends there.
Share = tuple[MetadataFileGroup, pa.LargeBinaryArray]
# Fewer keys are looked up sooner than another worker has taken up a part of them.
SHARED_FROM_KEYS = 1_000


class MetadataPartition:
    """All file groups of one partition, in the order that hashing counts them."""

    def __init__(self, groups: Sequence[MetadataFileGroup]) -> None:
        self._groups = tuple(sorted(groups, key=lambda group: group.file_id))

    @property
    def file_groups(self) -> tuple[MetadataFileGroup, ...]:
        return self._groups

    @property
    def file_group_ids(self) -> tuple[str, ...]:
        return tuple(group.file_id for group in self._groups)

    def read_ahead(self) -> None:
        """Read the logs of all groups, and what every look at a base file needs, at once."""
        read_ahead(self._groups)

    def entries_at_most(self) -> int:
        """How many entries there are, where those that logs change count again."""
        self.read_ahead()
        return sum(group.entries_at_most() for group in self._groups)

    def all(self, columns: Sequence[str]) -> Versions:
        """Every version of every key."""
        return self._versions([(group, ALL) for group in self._groups], columns)

    def lookup(self, keys: Sequence[str], columns: Sequence[str]) -> Versions:
        """Every version of the given keys."""
        asked = [(self._groups[number], exactly(chosen)) for number, chosen in self._routed(keys)]
        return self._of_keys(self._versions(asked, columns), set(keys))

    def newest_of(
        self, keys: pa.Array, columns: Sequence[str], executor: Executor
    ) -> Iterator[Versions]:
        """The last versions of many distinct keys, in parts; removed keys have none."""
        return self.newest_among(self.shares(keys), columns, executor)

    def shares(self, keys: pa.Array) -> list[Share]:
        """The file groups that can have some of many distinct keys, each with these."""
        numbers = np.asarray(file_group_index(keys, len(self._groups)))
        octets = keys.cast(pa.large_string()).cast(pa.large_binary())
        return [
            (self._groups[number], octets.filter(pa.array(numbers == number)))
            for number in np.unique(numbers).tolist()
        ]

    def newest_among(
        self, asked_keys: Sequence[Share], columns: Sequence[str], executor: Executor
    ) -> Iterator[Versions]:
        """The same of keys that are shared out already."""
        asked = [(group, KeySelection(among=keys)) for group, keys in asked_keys]
        # What one worker has found is decoded together: each decoding has its fixed cost.
        is_much = sum(len(keys) for _, keys in asked_keys) >= SHARED_FROM_KEYS
        workers = executor.workers if is_much else 1
        shares = [asked[first::workers] for first in range(workers)]
        return executor.map(
            lambda share: self._versions(share, columns).newest(), [one for one in shares if one]
        )

    def lookup_prefixes(
        self, prefixes: Sequence[str], columns: Sequence[str], *, hashed_by_prefix: bool = False
    ) -> Versions:
        """Every version of the keys that begin with one of the prefixes.

        Such keys may be in any group, unless the partition hashes just the prefix.
        """
        if not hashed_by_prefix:
            wanted = beginning_with(prefixes)
            return self._versions([(group, wanted) for group in self._groups], columns)
        asked = [
            (self._groups[number], beginning_with(chosen))
            for number, chosen in self._routed(prefixes)
        ]
        return self._versions(asked, columns)

    def _routed(self, texts: Sequence[str]) -> list[tuple[int, list[str]]]:
        """The numbers of the groups that hashing sends the texts to, each with its texts."""
        if not texts:
            return []
        numbers = np.asarray(file_group_index(pa.array(texts, pa.string()), len(self._groups)))
        return [
            (number, [texts[at] for at in np.flatnonzero(numbers == number).tolist()])
            for number in np.unique(numbers).tolist()
        ]

    def _versions(
        self, asked: Sequence[tuple[MetadataFileGroup, KeySelection]], columns: Sequence[str]
    ) -> Versions:
        read_ahead([group for group, _ in asked])
        runs = [run for group, selection in asked for run in group.runs(selection)]
        return decode_runs(runs, columns)

    def _of_keys(self, versions: Versions, keys: set[str]) -> Versions:
        wanted = pa.array([key.encode() for key in sorted(keys)], type=pa.large_binary())
        inside = pc.is_in(versions.keys, value_set=wanted)
        return versions.take(np.flatnonzero(np.asarray(inside)))
