"""The view of files: the slices of a table as of an instant, with those still being written.

Sizes of files: their spread by the write that has made them, and how much is written again.

The status of a file: whether it is there, and if not, what has removed it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from math import floor
from statistics import fmean, stdev

from lakewarden.engine.file_groups.file_names import LogFile, parse_file_name
from lakewarden.engine.file_groups.slices import FileGroup, FileSlice, Visibility
from lakewarden.engine.formats.instant_metadata import clean, restore, rollback
from lakewarden.engine.formats.instant_metadata.rollback import RollbackMetadata
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.services.inspection.history.history import (
    History,
    Recorded,
    TimeSpan,
    decode_write,
    figures_of_write,
)
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES, Action
from lakewarden.engine.timeline.timeline import Timeline

# What stands for all partitions, besides no pattern at all.
ALL_PARTITIONS = "ALL_PARTITIONS"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewRequest:
    """Which files count, and in which partitions; a pattern is as a shell's."""

    before: str = ""
    # Whether the instant named by `before` counts, too.
    is_inclusive: bool = False
    # Whether files count whose write has not completed.
    has_pending: bool = False
    # Whether pending compactions are preempted, so that they begin no slices.
    without_compaction: bool = False
    partitions: str = ""


@dataclass(frozen=True, slots=True)
class ViewedSlice:
    """A slice, and those of its logs that a pending compaction will fold into a base file."""

    slice: FileSlice
    scheduled: tuple[LogFile, ...]
    unscheduled: tuple[LogFile, ...]


@dataclass(frozen=True, slots=True)
class _WithPending:
    """Completions for which what is pending has completed when it was requested."""

    timeline: Timeline
    pending: frozenset[str] = field(default_factory=frozenset)

    def completion_time(self, requested: str) -> str | None:
        found = self.timeline.completion_time(requested)
        return requested if found is None and requested in self.pending else found

    def is_completed(self, requested: str) -> bool:
        return requested in self.pending or self.timeline.is_completed(requested)


def all_slices(state: Snapshot, plan_request: ViewRequest) -> Iterator[FileSlice]:
    """Every slice that there is, oldest first within a file group."""
    for group in _groups(state, plan_request, _visibility(state, plan_request)):
        yield from group.slices


def latest_slices(
    state: Snapshot, plan_request: ViewRequest, *, merge: bool
) -> Iterator[ViewedSlice]:
    """The newest slice of each file group; merged, it has the logs below a pending compaction."""
    visibility = _visibility(state, plan_request)
    for group in _groups(state, plan_request, visibility):
        pending = visibility.pending_compactions.get(group.key, "")
        below = {
            log.name
            for slice_ in group.slices
            if slice_.base_instant < pending
            for log in slice_.log_files
        }
        slice_ = group.latest_merged() if merge else group.slices[-1]
        yield ViewedSlice(
            slice_,
            tuple(log for log in slice_.log_files if log.name in below),
            tuple(log for log in slice_.log_files if log.name not in below),
        )


def _groups(
    state: Snapshot, plan_request: ViewRequest, visibility: Visibility
) -> tuple[FileGroup, ...]:
    # The metadata table knows nothing of what has not completed.
    use_metadata = not plan_request.has_pending
    partitions = None
    if plan_request.partitions not in ("", ALL_PARTITIONS):
        known = state.source(use_metadata=use_metadata).partitions()
        partitions = tuple(one for one in known if fnmatchcase(one, plan_request.partitions))
    return state.file_groups(visibility, partitions, use_metadata=use_metadata)


def _visibility(state: Snapshot, plan_request: ViewRequest) -> Visibility:
    pending = state.timeline.active.pending() if plan_request.has_pending else ()
    completions = _WithPending(state.timeline, frozenset(instant.requested for instant in pending))
    visibility = state.visibility(_newest(plan_request), completions)
    return (
        replace(visibility, pending_compactions={})
        if plan_request.without_compaction
        else visibility
    )


def _newest(plan_request: ViewRequest) -> str | None:
    """The newest instant that counts; what is before another one counts up to its predecessor."""
    if not plan_request.before:
        return None
    if not plan_request.before.isdecimal():
        raise InvalidRequest(
            "bad_instant",
            what=f"{plan_request.before!r} is not an instant.",
            why="Instants are digits, such as 20261118101500123.",
            now="CALL show_timeline lists them.",
            instant=plan_request.before,
        )
    if plan_request.is_inclusive or not int(plan_request.before):
        return plan_request.before
    return str(int(plan_request.before) - 1).zfill(len(plan_request.before))


@dataclass(frozen=True, slots=True)
class Spread:
    """The sizes of some files in bytes, sorted."""

    sizes: tuple[int, ...]

    @property
    def average(self) -> float:
        return fmean(self.sizes)

    @property
    def deviation(self) -> float:
        """The standard deviation, as of a sample."""
        return stdev(self.sizes) if len(self.sizes) > 1 else 0.0

    def quantile(self, share: float) -> float:
        """The size that a share of the files does not exceed, between two files if need be."""
        position = share * (len(self.sizes) + 1)
        if position < 1:
            return float(self.sizes[0])
        if position >= len(self.sizes):
            return float(self.sizes[-1])
        lower, upper = self.sizes[floor(position) - 1], self.sizes[floor(position)]
        return lower + (position - floor(position)) * (upper - lower)


@dataclass(frozen=True, slots=True)
class Amplification:
    """How many rows a write has updated, and how many it had to write for that."""

    records_updated: int
    records_written: int

    @property
    def factor(self) -> float | None:
        return self.records_written / self.records_updated if self.records_updated else None


def spreads(state: Snapshot, pattern: str = "") -> Iterator[tuple[str | None, Spread]]:
    """The spread over all files, then by write, newest first; nothing where there are no files.

    A pattern is as a shell's, and chooses partitions.
    """
    source = state.source(use_metadata=True)
    chosen = None
    if pattern:
        chosen = tuple(one for one in source.partitions() if fnmatchcase(one, pattern))
    by_instant: dict[str, list[int]] = {}
    for files in source.files(chosen).values():
        for file in files:
            by_instant.setdefault(file.instant, []).append(file.size_bytes)
    if by_instant:
        yield None, _spread([size for sizes in by_instant.values() for size in sizes])
    for instant in sorted(by_instant, reverse=True):
        yield instant, _spread(by_instant[instant])


def amplifications(history: History) -> Iterator[tuple[str | None, Amplification]]:
    """The amplification of all active writes together, then of each, newest first."""
    each = [
        (recorded.instant.requested, figures_of_write(decode_write(recorded)))
        for recorded in history.completed(COMPLETED_WRITES)
    ]
    if each:
        yield (
            None,
            Amplification(
                sum(one.records_updated for _, one in each),
                sum(one.records_written for _, one in each),
            ),
        )
    for instant, figures in each:
        yield instant, Amplification(figures.records_updated, figures.records_written)


def _spread(sizes: Sequence[int]) -> Spread:
    return Spread(tuple(sorted(sizes)))


_REMOVERS = (Action.CLEAN, Action.ROLLBACK, Action.RESTORE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatus:
    """A file is there, was deleted by an instant, or appears in no record."""

    status: str
    action: str | None = None
    instant: str | None = None
    is_archived: bool | None = None
    path: str | None = None


def file_status(history: History, partition: str, name: str) -> FileStatus:
    """What has become of a file; one that is there comes with the write that has made it.

    Whatever removed a file started after the write that made it, so the archive is read only from
    there on.
    """
    path = f"{partition}/{name}" if partition else name
    file = parse_file_name(name, 0)
    made = None if file is None else file.instant
    if history.storage.stat(path) is not None:
        return _there(history, made, history.storage.uri(path))
    for recorded in history.completed(_REMOVERS, TimeSpan(made), archived=True):
        if any(one.rpartition("/")[2] == name for one in _removed(recorded, partition)):
            return FileStatus(
                status="deleted",
                action=recorded.instant.action.value,
                instant=recorded.instant.requested,
                is_archived=recorded.is_archived,
            )
    return FileStatus(status="unknown")


def _there(history: History, made: str | None, address: str) -> FileStatus:
    if made is None:
        return FileStatus(status="exist", path=address)
    found = [
        (instant, is_archived)
        for instant, is_archived in history.instants(TimeSpan(made, made), archived=True)
        if instant.action.completed_as in COMPLETED_WRITES
    ]
    action, is_archived = (found[0][0].action.value, found[0][1]) if found else (None, None)
    return FileStatus(
        status="exist", action=action, instant=made, is_archived=is_archived, path=address
    )


def _removed(recorded: Recorded, partition: str) -> Iterator[str]:
    match recorded.instant.action:
        case Action.CLEAN:
            cleaned = clean.decode(recorded.content, recorded.path).partition_metadata
            if partition in cleaned:
                yield from cleaned[partition].success_delete_files
        case Action.ROLLBACK:
            yield from _rolled_back([rollback.decode(recorded.content, recorded.path)], partition)
        case _:
            restored = restore.decode(recorded.content, recorded.path).hoodie_restore_metadata
            for rollbacks in restored.values():
                yield from _rolled_back(rollbacks, partition)


def _rolled_back(rollbacks: Iterable[RollbackMetadata], partition: str) -> Iterator[str]:
    for one in rollbacks:
        if partition in one.partition_metadata:
            yield from one.partition_metadata[partition].success_delete_files
