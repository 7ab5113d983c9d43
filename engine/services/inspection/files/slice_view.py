"""The view of files: the slices of a table as of an instant, with those still being written."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from lakewarden.engine.file_groups.file_names import LogFile
from lakewarden.engine.file_groups.slices import FileGroup, FileSlice, Visibility
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.snapshot import Snapshot
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
