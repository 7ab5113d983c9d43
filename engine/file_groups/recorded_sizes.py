"""Recorded sizes: what completed writes say of the logs they have made, against what lies there.

A log that lost its end at the border of two blocks, or all of its bytes, looks complete. Its true
size is recorded by the write that made it, in the commit and in the metadata table. A log may be
longer than recorded: in version 6 a dying writer leaves bytes behind.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from lakewarden.engine.file_groups.file_names import BaseFile, DataFile, LogFile
from lakewarden.engine.file_groups.listing import FileSource, PartitionFiles
from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.formats.instant_metadata import replace as replacement
from lakewarden.engine.formats.instant_metadata.commit import WriteStat
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.timeline.active import ActiveTimeline
from lakewarden.engine.timeline.instants.instant import Action, Instant

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
