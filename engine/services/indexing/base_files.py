"""Base files of a build: what the table held at the base instant, one file group after the other.

Memory is bounded by a budget of keys, a batch of rows for each thread and the file group that is
written, however many rows there are: keys beyond the budget wait in a temporary file of this
machine. A file group that is finished is noted down, and no later attempt makes it again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import SEEK_END
from tempfile import SpooledTemporaryFile, gettempdir
from typing import IO, Protocol, Self, cast
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.hashing import file_group_index
from lakewarden.engine.formats.secondary_key import HashInput, secondary_keys, secondary_prefixes
from lakewarden.engine.kernel.settings import Setting, whole_number
from lakewarden.engine.metadata.encoding.records import (
    NO_ENTRIES,
    Entries,
    base_file,
    base_name,
    places_of_groups,
)
from lakewarden.engine.metadata.entries.changes import Located, TableChange
from lakewarden.engine.metadata.entries.content import content_of
from lakewarden.engine.metadata.entries.row_index_entries import (
    record_entries,
    secondary_index_entries,
)
from lakewarden.engine.metadata.entries.row_indexes import SecondaryIndex, row_indexes
from lakewarden.engine.metadata.reading.shards import file_id, record_shard, shard_of
from lakewarden.engine.metadata.reading.table import (
    COLUMN_STATS,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
)
from lakewarden.engine.metadata.writing.builds import (
    BuildNotes,
    FinishedGroup,
    finished_groups,
    note_group,
)
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.run.executor import Executor, LocalExecutor
from lakewarden.engine.services.indexing.past import Until
from lakewarden.engine.services.indexing.present import (
    KeyReader,
    PresentTable,
    repeated_keys_found,
    values_of,
)
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage, failure
from lakewarden.engine.table.config import METADATA_FOLDER
from lakewarden.engine.timeline.instants.instant import epoch_ms
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.write.replaced_rows import reader_with_keys

# Before the first write there is no instant to name.
_NEVER = "00000000000000000"
KEYS_HELD_BYTES = Setting(
    "lakewarden.index.keys_held_bytes",
    96 << 20,
    whole_number,
    "Bytes of keys that a build of a record index or secondary index holds in memory; more wait in "
    "a temporary file. Sorting and encoding a file group come on top",
)
_KEYS_SCHEMA = pa.schema([("key", pa.string())])
_SLICES_AT_ONCE = 2


class SpilledKeys:
    """The index keys of some file groups, each with where its rows live.

    When they get more than the limit, all held so far are put away in a file.
    """

    def __init__(self, bytes_max: int, file: IO[bytes]) -> None:
        self._bytes_max, self._file = bytes_max, file
        self._held: dict[int, list[Located]] = {}
        self._put_away: dict[int, list[_PutAway]] = {}
        self.held_bytes = 0

    def add(self, found: Mapping[int, Located]) -> None:
        """Keep keys of a slice, by the number of their file group."""
        for number, located in found.items():
            self._held.setdefault(number, []).append(located)
            self.held_bytes += located.keys.nbytes
        if self.held_bytes > self._bytes_max:
            self._put_all_away()

    def taken(self, number: int) -> list[Located]:
        """All keys of a file group, which are not kept any longer."""
        held = self._held.pop(number, [])
        self.held_bytes -= sum(one.keys.nbytes for one in held)
        away = self._put_away.pop(number, [])
        return [located for one in away for located in one.read(self._file)] + held

    def _put_all_away(self) -> None:
        for number in sorted(self._held):
            away = _PutAway.written(self._held.pop(number), self._file)
            self._put_away.setdefault(number, []).append(away)
        self.held_bytes = 0


@dataclass(frozen=True, slots=True)
class _PutAway:
    """Keys of one file group in a file: where they begin, and whose they are one after another."""

    offset: int
    size_bytes: int
    runs: tuple[tuple[FileGroupId, str | None, int], ...]

    @classmethod
    def written(cls, located: Sequence[Located], file: IO[bytes]) -> Self:
        keys = pa.record_batch([pa.concat_arrays([one.keys for one in located])], ["key"])
        content = keys.serialize()
        runs = tuple((one.home, one.instant, len(one.keys)) for one in located)
        try:
            offset = file.seek(0, SEEK_END)
            file.write(content)
            file.flush()
        except OSError as cause:
            raise failure("put keys away in", gettempdir(), cause) from None
        return cls(offset, content.size, runs)

    def read(self, file: IO[bytes]) -> Iterator[Located]:
        file.seek(self.offset)
        content = pa.py_buffer(file.read(self.size_bytes))
        keys = pa.ipc.read_record_batch(content, _KEYS_SCHEMA).column(0)
        first = 0
        for home, instant, count in self.runs:
            yield Located(keys.slice(first, count), home, instant)
            first += count


class _Routed(Protocol):
    """Reads the index keys of slices, by the file groups of the index."""

    def parts(self, slice_: FileSlice) -> Iterator[Mapping[int, Located]]:
        """Those of a slice, batch by batch."""
        ...


@dataclass(frozen=True, slots=True)
class _Whole:
    """All index keys of a slice at once, for workers elsewhere."""

    routed: _Routed

    def __call__(self, slice_: FileSlice) -> list[Mapping[int, Located]]:
        return list(self.routed.parts(slice_))


@dataclass(frozen=True, slots=True)
class _RoutedKeys:
    """Record keys."""

    reader: KeyReader
    count: int
    wanted: frozenset[int]

    def parts(self, slice_: FileSlice) -> Iterator[Mapping[int, Located]]:
        for one in self.reader.parts(slice_):
            found = _by_group(one.keys, file_group_index(one.keys, self.count), self.wanted)
            yield {number: Located(keys, one.home, one.instant) for number, keys in found}


@dataclass(frozen=True, slots=True)
class _RoutedValues:
    """The values of a column, each with the record key."""

    reader: SliceReader
    index: SecondaryIndex
    hash_input: HashInput
    count: int
    wanted: frozenset[int]

    def parts(self, slice_: FileSlice) -> Iterator[Mapping[int, Located]]:
        for change in values_of(self.reader, slice_, (self.index,)):
            keys = secondary_keys(change.values, change.keys)
            by_value = self.hash_input is HashInput.VALUE
            hashed = secondary_prefixes(change.values) if by_value else keys
            found = _by_group(keys, file_group_index(hashed, self.count), self.wanted)
            yield {number: Located(own, slice_.key) for number, own in found}


@dataclass(frozen=True, slots=True)
class BaseWriter:
    """Writes the base files that a build lacks."""

    context: Context
    attempt: Attempt
    snapshot: Snapshot
    notes: BuildNotes
    # Who reads the table: threads, or Spark's workers.
    workers: Executor
    _done: dict[tuple[str, str], FinishedGroup] = field(default_factory=dict)

    def write(self) -> None:
        """Step `index-build.base`: all file groups that have no base file yet."""
        self._done.update(finished_groups(self.context.storage, self.notes.instant))
        for partition in self.notes.partitions:
            if partition == RECORD_INDEX:
                self._record_index()
            elif partition.startswith(SECONDARY_INDEX_PREFIX):
                self._secondary(partition)
            else:
                self._of_files(partition)

    def write_empty(self, groups: Iterable[tuple[str, str]]) -> None:
        """Base files without entries for those of some file groups that have got none."""
        for partition, group in groups:
            done = self._done.get((partition, group))
            if done is None or not done.name:
                self._write(partition, group, NO_ENTRIES)

    @property
    def present(self) -> PresentTable:
        """The table as of the base instant."""
        view = Until(self.snapshot.timeline, requested_until=self.notes.upto)
        return PresentTable(self.snapshot, self.workers, view)

    def _of_files(self, partition: str) -> None:
        """What is known of files needs no bound: it is small beside them."""
        present, columns = self.present, self._columns()
        own = (one for one in self.snapshot.definitions if one.partition == partition)
        schema = self.snapshot.schema().columns
        indexes = row_indexes(own, schema, self.context.settings)
        is_of_statistics = partition in (COLUMN_STATS, PARTITION_STATS)
        wants_files = indexes.has_filters or bool(indexes.expressions)
        wants_files |= partition == COLUMN_STATS or COLUMN_STATS in self.notes.partitions
        change = TableChange(
            instant=self.notes.upto or _NEVER,
            new_files=present.files(columns if is_of_statistics else (), indexes)
            if wants_files
            else (),
            live_files={} if partition == COLUMN_STATS else present.live_files(),
        )
        content = content_of(self.snapshot.metadata, self.snapshot.definitions, change)
        for shard, entries in content.of(partition).items():
            count = self.notes.group_counts[f"{partition}/{shard}"]
            routed = dict(entries.routed(count))
            for number in range(count):
                self._finish(partition, file_id(shard, number), routed.get(number))

    def _columns(self) -> tuple[str, ...]:
        defined = (one for one in self.snapshot.definitions if one.partition == COLUMN_STATS)
        return self.notes.columns or next((one.columns for one in defined), ())

    def _record_index(self) -> None:
        present = self.present
        if not self.notes.is_partitioned:
            self._record_shard(present, shard_of(RECORD_INDEX), None)
            return
        for partition in sorted({one.partition for one in present.slices()}):
            self._record_shard(present, record_shard(partition), (partition,))

    def _record_shard(
        self, present: PresentTable, shard: str, partitions: tuple[str, ...] | None
    ) -> None:
        left, count = self._left(RECORD_INDEX, shard)
        if left:
            slices, routed = (
                present.slices(partitions),
                _RoutedKeys(present.key_reader, count, left),
            )
            gather = partial(self._gather, slices, routed)
            self._finish_all(RECORD_INDEX, shard, left, gather, self._entries)

    def _secondary(self, partition: str) -> None:
        (definition,) = (one for one in self.snapshot.definitions if one.partition == partition)
        settings, schema = self.context.settings, self.snapshot.schema().columns
        (index,) = row_indexes([definition], schema, settings).secondary
        present, shard = self.present, shard_of(partition)
        left, count = self._left(partition, shard)
        if left:
            reader = reader_with_keys(self.snapshot, [index.column])
            routed = _RoutedValues(reader, index, HashInput(definition.version), count, left)
            gather = partial(self._gather, present.slices(), routed)
            self._finish_all(partition, shard, left, gather, _index_entries)

    def _left(self, partition: str, shard: str) -> tuple[frozenset[int], int]:
        """The numbers of the file groups of a shard that are not finished; how many it has."""
        count = self.notes.group_counts[f"{partition}/{shard}"]
        numbers = (n for n in range(count) if (partition, file_id(shard, n)) not in self._done)
        return frozenset(numbers), count

    def _finish_all(
        self,
        partition: str,
        shard: str,
        left: frozenset[int],
        gather: Callable[[SpilledKeys], None],
        entries_of: Callable[[list[Located]], Entries | None],
    ) -> None:
        """One file group after the other; of those that are written nothing is held."""
        # On disk from the first byte on, without a name: it goes with the process.
        with SpooledTemporaryFile(max_size=1) as file:
            kept = SpilledKeys(self.context.settings[KEYS_HELD_BYTES], cast(IO[bytes], file))
            gather(kept)
            for number in sorted(left):
                self._finish(partition, file_id(shard, number), entries_of(kept.taken(number)))

    def _gather(self, slices: Sequence[FileSlice], routed: _Routed, kept: SpilledKeys) -> None:
        """Keep the index keys of all slices, by the number of their file group."""
        if isinstance(self.workers, LocalExecutor):
            for part in self.workers.parts(routed.parts, slices):
                self.attempt.assert_mine()
                kept.add(part)
            return
        for some in _in_parts(slices, _SLICES_AT_ONCE * self.workers.workers):
            self.attempt.assert_mine()
            for parts in self.workers.map(_Whole(routed), some):
                for part in parts:
                    kept.add(part)

    def _entries(self, located: Sequence[Located]) -> Entries | None:
        if not located:
            return None
        shards = record_entries(
            located, (), self._moment_ms, is_partitioned=self.notes.is_partitioned
        )
        (entries,) = shards.values()
        own = entries.in_order()
        if len(own.keys) < len(entries.keys):
            raise repeated_keys_found(located)
        return own

    def _moment_ms(self, instant: str | None) -> int:
        moment_ms = epoch_ms(instant or self.notes.instant, self.snapshot.zone)
        assert moment_ms is not None
        return moment_ms

    def _finish(self, partition: str, group: str, entries: Entries | None) -> None:
        """Write a base file, and note it down: from then on it is not made again."""
        if (partition, group) in self._done:
            return
        self._write(partition, group, entries)

    def _write(self, partition: str, group: str, entries: Entries | None) -> None:
        self.attempt.assert_mine()
        size_bytes, checksum, name = 0, 0, ""
        if entries is not None:
            name = base_name(group, self.notes.base_instant, self.attempt.write_token(0))
            payload = base_file(entries, self.context.now_ms())
            self._metadata.put(f"{partition}/{name}", payload)
            size_bytes, checksum = len(payload), crc32(payload)
        finished = FinishedGroup(
            partition=partition,
            file_id=group,
            name=name,
            entries=0 if entries is None else len(entries.keys),
            size_bytes=size_bytes,
            checksum=checksum,
        )
        note_group(self.context.storage, self.notes.instant, finished)
        self._done[partition, group] = finished
        total = sum(self.notes.group_counts.values())
        self.attempt.tell("building", done=len(self._done), total=total)

    @property
    def _metadata(self) -> Storage:
        return self.context.storage.below(METADATA_FOLDER)


def _index_entries(located: Sequence[Located]) -> Entries | None:
    if not located:
        return None
    return secondary_index_entries([one.keys for one in located]).in_order()


def _by_group(
    keys: pa.Array, numbers: npt.NDArray[np.int64], wanted: frozenset[int]
) -> Iterator[tuple[int, pa.Array]]:
    for number, places in places_of_groups(numbers).items():
        if number in wanted:
            yield number, keys.take(pa.array(places))


def _in_parts(slices: Sequence[FileSlice], size: int) -> Iterator[Sequence[FileSlice]]:
    for first in range(0, len(slices), size):
        yield slices[first : first + size]


def damaged(storage: Storage, groups: Mapping[tuple[str, str], FinishedGroup]) -> Iterator[str]:
    """The base files that are not as they were written."""
    metadata = storage.below(METADATA_FOLDER)
    for group in groups.values():
        if not group.name:
            continue
        path = f"{group.partition}/{group.name}"
        entry = metadata.stat(path)
        if (
            entry is None
            or entry.size_bytes != group.size_bytes
            or crc32(metadata.read(path)) != group.checksum
        ):
            yield path
