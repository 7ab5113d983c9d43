"""Figures of writes: what a commit, or one of its partitions, has written."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lakewarden.engine.formats.instant_metadata import commit, replace
from lakewarden.engine.formats.instant_metadata.commit import (
    NO_PREVIOUS_COMMIT,
    CommitMetadata,
    WriteStat,
)
from lakewarden.engine.services.inspection.history.history import History, Recorded
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES, Action


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFigures:
    """Sums over file groups; one without an earlier base file was added, the others updated."""

    files_added: int = 0
    files_updated: int = 0
    bytes_written: int = 0
    records_written: int = 0
    records_inserted: int = 0
    records_updated: int = 0
    records_deleted: int = 0
    errors: int = 0

    @property
    def average_record_bytes(self) -> int:
        """Rounded up; 0 where nothing was written."""
        return -(-self.bytes_written // self.records_written) if self.records_written else 0


def decode_write(recorded: Recorded) -> CommitMetadata:
    """The metadata of a completed write."""
    if recorded.instant.action is Action.REPLACE_COMMIT:
        return replace.decode(recorded.content, recorded.path)
    return commit.decode(recorded.content, recorded.path)


def stats_of(metadata: CommitMetadata) -> Iterator[tuple[str, WriteStat]]:
    """The write stats with their partitions, in the order of partitions and file ids."""
    for partition in sorted(metadata.partition_to_write_stats):
        stats = metadata.partition_to_write_stats[partition]
        for stat in sorted(stats, key=lambda one: (one.file_id, one.path or "")):
            yield partition, stat


def figures_of(stats: Iterable[WriteStat]) -> WriteFigures:
    """The sums of some write stats."""
    known = list(stats)
    added = sum(stat.prev_commit in (None, NO_PREVIOUS_COMMIT) for stat in known)
    return WriteFigures(
        files_added=added,
        files_updated=len(known) - added,
        bytes_written=sum(stat.total_write_bytes for stat in known),
        records_written=sum(stat.num_writes for stat in known),
        records_inserted=sum(stat.num_inserts for stat in known),
        records_updated=sum(stat.num_update_writes for stat in known),
        records_deleted=sum(stat.num_deletes for stat in known),
        errors=sum(stat.total_write_errors for stat in known),
    )


def figures_of_write(metadata: CommitMetadata) -> WriteFigures:
    """The sums of a whole write."""
    return figures_of(stat for _, stat in stats_of(metadata))


@dataclass(frozen=True, slots=True)
class Lead:
    """How far a table is ahead of another one, or behind it; `instants` are the difference."""

    is_ahead: bool
    instants: tuple[str, ...]


def compare(one: History, other: History) -> Lead:
    """The first table beside the second, by their newest writes."""
    ours, theirs = _newest(one), _newest(other)
    if theirs > ours:
        return Lead(False, _after(other, ours))
    return Lead(True, _after(one, theirs))


def _newest(history: History) -> str:
    """The newest completed write; "" sorts before all, for a table that has none."""
    writes = history.timeline.active.completed(COMPLETED_WRITES)
    return max((instant.requested for instant in writes), default="")


def _after(history: History, time: str) -> tuple[str, ...]:
    """The writes requested after a time, the archived ones of that range, too."""
    active = [one.requested for one in history.timeline.active.completed(COMPLETED_WRITES)]
    archived = [
        one.requested
        for one in history.timeline.archive.instants(since=time)
        if one.action in COMPLETED_WRITES
    ]
    return tuple(sorted({one for one in (*active, *archived) if one > time}))
