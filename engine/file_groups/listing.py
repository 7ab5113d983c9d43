"""Listing: the partitions and files of a table as the storage itself shows them.

Recorded sizes: what completed writes say of the logs they have made, against what lies there.

A log that lost its end at the border of two blocks, or all of its bytes, looks complete. Its true
size is recorded by the write that made it, in the commit and in the metadata table. A log may be
longer than recorded: in version 6 a dying writer leaves bytes behind.

Lost files: what completed writes name and the newest readers need, and is not there as it was.

A table without a metadata table is listed, and a listing cannot miss what it does not show. So the
slices are built as they would be if every file that the commits name were there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from lakewarden.engine.file_groups.file_names import (
    PARTITION_METADATA,
    BaseFile,
    DataFile,
    LogFile,
    parse_file_name,
)
from lakewarden.engine.file_groups.slices import FileSlice, Visibility, file_groups
from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.formats.instant_metadata import replace as replacement
from lakewarden.engine.formats.instant_metadata.commit import WriteStat
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.storage.port import Entry, Storage
from lakewarden.engine.timeline.instants.instant import Action, Instant
from lakewarden.engine.timeline.timeline import ActiveTimeline

HOODIE_FOLDER = ".hoodie"

PartitionFiles = dict[str, tuple[DataFile, ...]]


class FileSource(Protocol):
    """Where partitions and files come from: the metadata table, or a listing."""

    def partitions(self) -> tuple[str, ...]:
        """All partition paths, sorted; "" is the only one of a table without partitions."""
        ...

    def files(self, partitions: Sequence[str] | None = None) -> PartitionFiles:
        """The data files of the given partitions, of all without an argument."""
        ...


class StorageListing:
    """Files by listing. A folder is a partition when it holds Hudi's partition metadata file."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def partitions(self) -> tuple[str, ...]:
        return tuple(sorted(self._walk()))

    def files(self, partitions: Sequence[str] | None = None) -> PartitionFiles:
        if partitions is None:
            folders = self._walk()
            return {folder: data_files(folders[folder]) for folder in sorted(folders)}
        return {folder: data_files(self._storage.list(folder).files) for folder in partitions}

    def foreign(self, partitions: Sequence[str] | None = None) -> tuple[str, ...]:
        """The paths of files in partitions that are none of the table's, but for hidden ones."""
        chosen = self.partitions() if partitions is None else partitions
        found = (entry for folder in chosen for entry in self._storage.list(folder).files)
        return tuple(
            entry.path
            for entry in found
            if not entry.name.startswith(".") and parse_file_name(entry.name, 0) is None
        )

    def _walk(self) -> dict[str, list[Entry]]:
        top = self._storage.list("")
        folders: dict[str, list[Entry]] = {"": list(top.files)}
        for folder in top.folders:
            if folder.rstrip("/") == HOODIE_FOLDER:
                continue
            for entry in self._storage.walk(folder):
                folders.setdefault(entry.path.rpartition("/")[0], []).append(entry)
        return {folder: files for folder, files in folders.items() if _is_partition(files)}


def data_files(entries: Sequence[Entry]) -> tuple[DataFile, ...]:
    """The data files among the files of a folder."""
    parsed = (parse_file_name(entry.name, entry.size_bytes) for entry in entries)
    return tuple(file for file in parsed if file is not None)


def _is_partition(entries: Sequence[Entry]) -> bool:
    return any(entry.name.startswith(PARTITION_METADATA) for entry in entries)


# The path of a file -> how many bytes completed writes have left it.
Sizes = Mapping[str, int]


def assert_whole(path: str, log: LogFile, found_bytes: int) -> None:
    """Refuse a log that is shorter than completed writes have left it."""
    if found_bytes < log.recorded_bytes:
        raise truncated(path, log.recorded_bytes, found_bytes)


_RESTORE = "Restore the file from a copy, or the table to a savepoint. Nothing was changed."


def truncated(
    path: str, recorded_bytes: int, found_bytes: int, now: str = _RESTORE
) -> CorruptTable:
    """The error for a file that has lost bytes."""
    return CorruptTable(
        "truncated_file",
        what=f"{path} has {found_bytes} bytes, but should have at least {recorded_bytes}.",
        why="A completed write recorded that size; the rest of the file is lost.",
        now=now,
        path=path,
        recorded_bytes=recorded_bytes,
        found_bytes=found_bytes,
    )


class RecordedSizes:
    """The sizes that the completed writes of a timeline tell; a write is read when first needed."""

    def __init__(self, active: ActiveTimeline) -> None:
        self._active = active
        self._writes = {one.requested: one for one in active.completed()}
        self._reported: dict[Instant, Sizes] = {}

    def of_log(self, path: str, log: LogFile) -> int | None:
        """How many bytes of a log completed writes have made; None if they left the timeline."""
        writers = self._writers(log)
        if writers is None:
            return None
        return max((self.reported_by(writer).get(path, 0) for writer in writers), default=0)

    def of_files(self, partition: str, files: Sequence[DataFile]) -> tuple[DataFile, ...]:
        """Files with what is recorded of those logs that the newest readers need."""
        newest: dict[str, str] = {}
        for file in files:
            if isinstance(file, BaseFile) and file.instant in self._writes:
                newest[file.file_id] = max(file.instant, newest.get(file.file_id, ""))
        return tuple(
            self.with_record(partition, file)
            if isinstance(file, LogFile) and file.instant >= newest.get(file.file_id, "")
            else file
            for file in files
        )

    def with_record(self, partition: str, log: LogFile) -> LogFile:
        """A log with what is recorded of it.

        Without a record it has at least one byte, since no write makes an empty log.
        """
        reported = self.of_log(f"{partition}/{log.name}" if partition else log.name, log)
        return replace(log, recorded_bytes=1 if reported is None else reported)

    def every(self) -> dict[str, dict[str, int]]:
        """All files that the completed writes of the active timeline name, by partition."""
        found: dict[str, dict[str, int]] = {}
        for instant in self._writes.values():
            for path, size in self.reported_by(instant).items():
                partition, _, name = path.rpartition("/")
                sizes = found.setdefault(partition, {})
                sizes[name] = max(size, sizes.get(name, 0))
        return found

    def reported_by(self, instant: Instant) -> Sizes:
        """The files that a completed write names."""
        if instant not in self._reported:
            replaces = instant.action is Action.REPLACE_COMMIT
            decode = replacement.decode if replaces else commit.decode
            metadata = decode(self._active.read(instant), self._active.path(instant))
            self._reported[instant] = recorded_in(
                stat for stats in metadata.partition_to_write_stats.values() for stat in stats
            )
        return self._reported[instant]

    def _writers(self, log: LogFile) -> tuple[Instant, ...] | None:
        """Who has written to a log, in version 6 anybody since its base file; None if unknown."""
        if self._active.layout.version > 1:
            writer = self._writes.get(log.instant)
            return None if writer is None else (writer,)
        first = self._active.first_write()
        if first is None or first.requested > log.instant:
            return None
        return tuple(one for time, one in self._writes.items() if time >= log.instant)


class RecordedListing:
    """A file source that lists, and has the commits say how long logs should be.

    That takes one small read for each write whose logs are listed, which are as many at least.
    """

    def __init__(self, listing: FileSource, recorded: RecordedSizes) -> None:
        self._listing = listing
        self._recorded = recorded

    def partitions(self) -> tuple[str, ...]:
        return self._listing.partitions()

    def files(self, partitions: Sequence[str] | None = None) -> PartitionFiles:
        listed = self._listing.files(partitions)
        return {path: self._recorded.of_files(path, files) for path, files in listed.items()}


def recorded_in(stats: Iterable[WriteStat]) -> Sizes:
    """The files that a write names, and how long it has left them."""
    sizes: dict[str, int] = {}
    for stat in stats:
        sizes |= stat.cdc_stats or {}
        if stat.path:
            # In version 6 a write tells where it has started to append, and how much.
            end = (stat.log_offset or 0) + stat.file_size_in_bytes
            sizes[stat.path] = max(end, sizes.get(stat.path, 0))
    return sizes


@dataclass(frozen=True, slots=True)
class LostFile:
    """A file that is gone or shorter than a completed write has left it."""

    partition: str
    name: str
    recorded_bytes: int
    # None for one that is not there at all.
    found_bytes: int | None


def lost_files(
    there: Mapping[str, Sequence[DataFile]], recorded: RecordedSizes, visibility: Visibility
) -> Iterator[LostFile]:
    """The files of the newest slices that have lost bytes, as far as the active timeline knows."""
    for partition, sizes in sorted(recorded.every().items()):
        listed = {file.name: file for file in there.get(partition, ())}
        named = (parse_file_name(name, size) for name, size in sizes.items() if name not in listed)
        files = [*listed.values(), *(file for file in named if file is not None)]
        for group in file_groups(partition, files, visibility):
            for name in _names(group.latest_merged()):
                found = listed.get(name)
                found_bytes = None if found is None else found.size_bytes
                if (found_bytes or 0) < sizes.get(name, 0):
                    yield LostFile(partition, name, sizes[name], found_bytes)


def _names(slice_: FileSlice) -> Iterator[str]:
    if slice_.base_file is not None:
        yield slice_.base_file.name
    for log in slice_.log_files:
        yield log.name
