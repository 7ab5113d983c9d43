"""Base files of a build: what the table held at the base instant, one file group after the other.

Memory is bounded by a budget of keys and one batch of slices, however many rows there are: where
the keys of all file groups don't fit, the table's keys are read once more for the rest. A file
group that is finished is noted down, and no later attempt makes it again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np
import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.hashing import file_group_index
from lakewarden.engine.metadata.encoding.base_files import base_file, base_name
from lakewarden.engine.metadata.encoding.entries import NO_ENTRIES, Entries
from lakewarden.engine.metadata.entries.changes import Located, TableChange
from lakewarden.engine.metadata.entries.content import content_of
from lakewarden.engine.metadata.entries.record_index_entries import record_entries
from lakewarden.engine.metadata.entries.row_indexes import row_indexes
from lakewarden.engine.metadata.reading.shards import file_id, record_shard, shard_of
from lakewarden.engine.metadata.reading.table import COLUMN_STATS, PARTITION_STATS, RECORD_INDEX
from lakewarden.engine.metadata.writing.builds import (
    BuildNotes,
    FinishedGroup,
    finished_groups,
    note_group,
)
from lakewarden.engine.services.indexing.past import Until
from lakewarden.engine.services.indexing.present import PresentTable, repeated_keys_found
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import METADATA_FOLDER
from lakewarden.engine.timeline.instants.instant import epoch_ms
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.state.context import Context

# Before the first write there is no instant to name.
_NEVER = "00000000000000000"
# How many bytes of keys are held; sorting and encoding a file group take as much again.
KEYS_BYTES_MAX = 96 << 20
_SLICES_AT_ONCE = 2


@dataclass(slots=True)
class _Kept:
    """The keys of some file groups of a shard; the last groups are given up where it gets full."""

    groups: dict[int, list[Located]]
    bytes: int = 0

    def add(self, found: Located, count: int) -> None:
        numbers = np.asarray(file_group_index(found.keys, count))
        for number in np.unique(numbers).tolist():
            if number in self.groups:
                keys = found.keys.filter(pa.array(numbers == number))
                self.groups[number].append(Located(keys, found.home, found.instant))
                self.bytes += keys.nbytes
        while self.bytes > KEYS_BYTES_MAX and len(self.groups) > 1:
            gone = self.groups.pop(max(self.groups))
            self.bytes -= sum(one.keys.nbytes for one in gone)


@dataclass(frozen=True, slots=True)
class BaseWriter:
    """Writes the base files that a build lacks."""

    context: Context
    attempt: Attempt
    snapshot: Snapshot
    notes: BuildNotes
    _done: dict[tuple[str, str], FinishedGroup] = field(default_factory=dict)

    def write(self) -> None:
        """Step `index-build.base`: all file groups that have no base file yet."""
        self._done.update(finished_groups(self.context.storage, self.notes.instant))
        for partition in self.notes.partitions:
            if partition == RECORD_INDEX:
                self._record_index()
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
        return PresentTable(self.snapshot, self.context.ports.executor, view)

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
            valued=present.valued(indexes.secondary),
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
            self._shard(present, shard_of(RECORD_INDEX), None)
            return
        for partition in sorted({one.partition for one in present.slices()}):
            self._shard(present, record_shard(partition), (partition,))

    def _shard(self, present: PresentTable, shard: str, partitions: tuple[str, ...] | None) -> None:
        """The file groups of a shard, as many of them at once as their keys fit."""
        count = self.notes.group_counts[f"{RECORD_INDEX}/{shard}"]
        left = [n for n in range(count) if (RECORD_INDEX, file_id(shard, n)) not in self._done]
        slices = present.slices(partitions) if left else ()
        while left:
            kept = _Kept({number: [] for number in left})
            for some in _in_parts(slices, _SLICES_AT_ONCE * present.executor.workers):
                self.attempt.assert_mine()
                for found in present.executor.map(present.keys_of, some):
                    if len(found.keys):
                        kept.add(found, count)
            for number in sorted(kept.groups):
                entries = self._entries(kept.groups.pop(number))
                self._finish(RECORD_INDEX, file_id(shard, number), entries)
            left = [n for n in left if (RECORD_INDEX, file_id(shard, n)) not in self._done]

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
