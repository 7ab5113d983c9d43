"""Optimistic concurrency: what else has happened to the file groups that a write touches.

A write chooses its file groups from the timeline as it was when it began. At its commit, under the
lock, it looks what has happened since: what others have completed there, what they are going to
rewrite, and what was taken back that the write may have built upon. Where it decided by rows that
it looked for, rows that came meanwhile count as well, in whatever file group they are.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from lakewarden.engine.conflicts.read_scopes import Change, ReadScope
from lakewarden.engine.conflicts.touched_groups import (
    PLANNED,
    Touched,
    TouchKind,
    planned_by,
    touched_by,
)
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.timeline.active import ActiveTimeline
from lakewarden.engine.timeline.instants.instant import Action, Instant
from lakewarden.engine.timeline.timeline import Timeline

_BUCKET_DIGITS = 8
# What is in doubt for a write that found nothing to touch: it might find something now.
_ANYWHERE = frozenset({FileGroupId("", "")})
_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ObservedInstants:
    """The instants that the timeline showed when a write began to choose its file groups."""

    completed: frozenset[_Key]
    pending: frozenset[_Key]

    @classmethod
    def of(cls, active: ActiveTimeline) -> "ObservedInstants":
        """Taken from the very timeline that the write reads the table by."""
        writes = [instant for instant in active.instants if instant.action.is_write]
        return cls(
            frozenset(instant.key for instant in writes if instant.is_completed),
            frozenset(instant.key for instant in writes if not instant.is_completed),
        )


@dataclass(frozen=True, slots=True)
class ConflictStrategy:
    """How conflicts are reported.

    Where writers are preferred, what is only planned gives way to them, and must itself look for
    conflicts before it completes. With a bucket index two writes to one bucket are about the same
    keys, whatever file ids each has given to a bucket that was empty.
    """

    prefers_writers: bool = False
    compares_buckets: bool = False

    def identity(self, key: FileGroupId) -> FileGroupId:
        """What has to be equal for two file groups to count as the same."""
        return (
            FileGroupId(key.partition, key.file_id[:_BUCKET_DIGITS])
            if self.compares_buckets
            else key
        )


class ConflictKind(Enum):
    """How another instant stands against a write."""

    COMPLETED = "completed after this one started"
    PLANNED = "is pending"
    TAKEN_BACK = "was rolled back after this one had read it"
    # In partitions that the write has searched.
    BROUGHT = "brought rows after this one had read the partition"
    TAKEN = "deleted rows after this one had read the partition"
    # Only a cancellable plan gives way to one.
    UNDER_WAY = "is under way and writes to the same file group"


@dataclass(frozen=True, slots=True)
class Conflicting:
    """Another instant that stands against a write, and the file group both are about."""

    instant: str
    action: Action
    partition: str
    file_id: str
    kind: ConflictKind


def find_conflicts(
    mine: frozenset[FileGroupId],
    since: ObservedInstants,
    timeline: Timeline,
    strategy: ConflictStrategy,
    *,
    appended: frozenset[FileGroupId] = frozenset(),
    read_scopes: Collection[ReadScope] = (),
) -> tuple[Conflicting, ...]:
    """Everything that stands against a write; what is only planned comes last.

    `appended` are those of mine that got log files only. A compaction leaves them valid: since
    version 8 a log belongs to the slice that is there when the log is completed. `read_scopes` say
    where the write has searched for the rows that it decided by.
    """
    active = timeline.active
    movable = appended if active.layout.version > 1 else frozenset()
    found = [*_gone(mine or _ANYWHERE, since, timeline)]
    for instant in completed_since(since, active):
        touched = touched_by(active, instant)
        endangered = _endangered(mine, movable, instant, touched, since)
        overlaps = [*_overlaps(active, instant, endangered, touched, strategy)]
        found += overlaps or _invalidated(instant, touched, read_scopes)
    if not strategy.prefers_writers:
        for instant in active.pending(PLANNED):
            planned = planned_by(active, instant)
            endangered = _endangered(mine, movable, instant, planned, since)
            found += _overlaps(active, instant, endangered, planned, strategy)
    return tuple(found)


def _invalidated(
    instant: Instant, touched: Touched, read_scopes: Iterable[ReadScope]
) -> Iterator[Conflicting]:
    for scope in read_scopes:
        kind = _INVALIDATED[scope.invalidated_by]
        yield from _conflicting(instant.requested, instant.action, kind, scope.invalidated(touched))


def write_conflict(requested: str, found: tuple[Conflicting, ...]) -> Conflict:
    """The error of a write that has to give way to what was found."""
    first = found[0]
    more = f", and at {len(found) - 1} more" if len(found) > 1 else ""
    other = f"{first.action.value} {first.instant}"
    place = f" at file group {first.file_id} of partition {first.partition!r}"
    return Conflict(
        "write_conflict",
        what=(
            f"The write {requested} conflicts with the {other}"
            f"{place if first.file_id else ''}{more}."
        ),
        why=f"The {other} {first.kind.value}.",
        now=_REMEDIES[first.kind],
        instant=first.instant,
        action=first.action.value,
        partition=first.partition,
        file_id=first.file_id,
        conflicts=len(found),
    )


AGAIN = (
    "Nothing was changed. Write again, or set hoodie.write.num.retries.on.conflict.failures "
    "to retry automatically."
)
_REMEDIES = {
    ConflictKind.COMPLETED: AGAIN,
    ConflictKind.PLANNED: "Nothing was changed. Run the plan or cancel it, then write again.",
    ConflictKind.TAKEN_BACK: AGAIN,
    ConflictKind.UNDER_WAY: AGAIN,
    ConflictKind.BROUGHT: AGAIN,
    ConflictKind.TAKEN: AGAIN,
}
_INVALIDATED = {Change.ROWS_BROUGHT: ConflictKind.BROUGHT, Change.ROWS_TAKEN: ConflictKind.TAKEN}


def completed_since(since: ObservedInstants, active: ActiveTimeline) -> list[Instant]:
    """The writes that others have completed meanwhile, in the order of completion."""
    fresh = [instant for instant in active.completed() if instant.key not in since.completed]
    return sorted(fresh, key=lambda instant: (instant.completed or "", instant))


def _endangered(
    mine: frozenset[FileGroupId],
    movable: frozenset[FileGroupId],
    instant: Instant,
    touched: Touched,
    since: ObservedInstants,
) -> frozenset[FileGroupId]:
    # The result of a log compaction takes its place among the logs by its instant. Logs of a write
    # that began after it was planned come behind it; those of an earlier one would come before.
    is_behind = touched.kind is TouchKind.LOG_COMPACTION and instant.key in since.pending
    return mine - movable if is_behind or touched.kind is TouchKind.COMPACTION else mine


def _overlaps(
    active: ActiveTimeline,
    instant: Instant,
    mine: Iterable[FileGroupId],
    touched: Touched,
    strategy: ConflictStrategy,
) -> Iterator[Conflicting]:
    theirs = {strategy.identity(key) for key in touched.keys}
    both = [key for key in mine if strategy.identity(key) in theirs]
    files = active.files_of(instant)
    action = files.started_as if files else instant.action
    kind = ConflictKind.COMPLETED if instant.is_completed else ConflictKind.PLANNED
    return _conflicting(instant.requested, action, kind, both)


def _gone(
    mine: frozenset[FileGroupId], since: ObservedInstants, timeline: Timeline
) -> Iterator[Conflicting]:
    """Writes that cannot be asked any more what they touched, so that all of mine is in doubt.

    Some were completed when mine began and have been rolled back: mine may be built upon their
    rows. Others have been completed and archived since.
    """
    known = {instant.key for instant in timeline.active.instants}
    # One whose rollback is under way is on the timeline still, and completed no more.
    completed = {instant.key for instant in timeline.active.instants if instant.is_completed}
    for requested, word in sorted(since.completed - completed):
        if (requested, word) in known or timeline.archive.completion_time(requested) is None:
            yield from _conflicting(requested, Action(word), ConflictKind.TAKEN_BACK, mine)
    for requested, word in sorted(since.pending - known):
        if timeline.archive.completion_time(requested) is not None:
            yield from _conflicting(requested, Action(word), ConflictKind.COMPLETED, mine)
    for instant in _begun_and_archived(since, timeline):
        yield from _conflicting(instant.requested, instant.action, ConflictKind.COMPLETED, mine)


def _begun_and_archived(since: ObservedInstants, timeline: Timeline) -> tuple[Instant, ...]:
    """Writes of others that came and went; the archive is read only where it may have moved on."""
    known = {instant.key for instant in timeline.active.instants}
    gone = sorted(since.completed - known)
    has_moved = gone if since.completed else timeline.active.completed()
    if not has_moved:
        return ()
    seen = known | since.completed | since.pending
    archived = timeline.archive.instants(gone[0][0] if gone else None)
    return tuple(one for one in archived if one.action.is_write and one.key not in seen)


def _conflicting(
    requested: str, action: Action, kind: ConflictKind, keys: Iterable[FileGroupId]
) -> Iterator[Conflicting]:
    for key in sorted(keys):
        yield Conflicting(requested, action, key.partition, key.file_id, kind)
