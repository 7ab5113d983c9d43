"""Optimistic concurrency: what else has happened to the file groups that a write touches.

A write chooses its file groups from the timeline as it was when it began. At its commit, under the
lock, it looks what has happened since: what others have completed there, what they are going to
rewrite, and what was taken back that the write may have built upon. Where it decided by rows that
it looked for, rows that came meanwhile count as well, in whatever file group they are.

Conflict strategies by the names that Hudi gives them.

What stands against a plan at its commit: writes to its file groups that it does not know of.

An immutable plan keeps writes away, so that nothing should be found; but Java's writers may be set
to write in spite of it, and then the plan has to give way, or it would remove their rows. A
cancellable plan keeps no writer away. It gives way even to a write that has not committed yet,
which would otherwise find its file groups gone at its own commit.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from lakewarden.engine.conflicts.touched_groups import (
    PLANNED,
    Change,
    ReadScope,
    Touched,
    TouchKind,
    planned_by,
    touched_by,
)
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.settings import CONFLICT_STRATEGY
from lakewarden.engine.timeline.instants.instant import Action, Instant
from lakewarden.engine.timeline.timeline import ActiveTimeline, Timeline

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


_SUFFIX = "conflictresolutionstrategy"
_STRATEGIES = {
    "simpleconcurrentfilewrites": ConflictStrategy(),
    "simple": ConflictStrategy(),
    "preferwriter": ConflictStrategy(prefers_writers=True),
    "bucketindexconcurrentfilewrites": ConflictStrategy(compares_buckets=True),
}


def strategy_of(settings: Settings, *, has_bucket_index: bool) -> ConflictStrategy:
    """The strategy that is set, or the one that suits the table's index."""
    named = settings[CONFLICT_STRATEGY]
    if not named:
        return ConflictStrategy(compares_buckets=has_bucket_index)
    name = named.rpartition(".")[2].lower().replace("_", "").removesuffix(_SUFFIX)
    if name not in _STRATEGIES:
        raise InvalidRequest(
            "unsupported_conflict_strategy",
            what=f"Lakewarden does not have the conflict strategy {named!r}.",
            why=f"{CONFLICT_STRATEGY.key} knows {', '.join(sorted(_STRATEGIES))}.",
            now="Leave it out: Lakewarden then takes the one that suits the table's index.",
            strategy=named,
        )
    strategy = _STRATEGIES[name]
    return ConflictStrategy(strategy.prefers_writers, strategy.compares_buckets or has_bucket_index)


KINDS = {
    Action.COMPACTION: TouchKind.COMPACTION,
    Action.LOG_COMPACTION: TouchKind.LOG_COMPACTION,
    Action.CLUSTERING: TouchKind.CLUSTERING,
}


def find_plan_conflicts(
    plan: str, kind: TouchKind, groups: frozenset[FileGroupId], active: ActiveTimeline
) -> tuple[Conflicting, ...]:
    """The writes completed since a plan was published that it would undo."""
    return tuple(
        conflict
        for instant in active.completed_between(plan, None)
        for conflict in _find_overlap_with_plans(active, instant, plan, kind, groups)
    )


def find_live_conflicts(
    plan: str, kind: TouchKind, groups: frozenset[FileGroupId], live: Mapping[Instant, Touched]
) -> tuple[Conflicting, ...]:
    """The live writes that have started upon file groups that a plan would take from under them."""
    return tuple(
        Conflicting(
            instant.requested, instant.action, key.partition, key.file_id, ConflictKind.UNDER_WAY
        )
        for instant, touched in live.items()
        for key in sorted(groups & endangering(plan, kind, instant.requested, touched))
    )


def overlapping_plans(
    groups: frozenset[FileGroupId], active: ActiveTimeline, *, but: str = ""
) -> tuple[str, ...]:
    """The pending plans, other than one, that hold some of the file groups."""
    return tuple(
        instant.requested
        for instant in active.pending(PLANNED)
        if instant.requested != but and groups & planned_by(active, instant).keys
    )


def plan_conflict(plan: str, action: Action, found: tuple[Conflicting, ...]) -> Conflict:
    """The error of a plan that has to give way."""
    first = found[0]
    other = f"{first.action.value} {first.instant}"
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return Conflict(
        "plan_conflict",
        what=(
            f"The {action.value} {plan} conflicts with the {other} at file group "
            f"{first.file_id} of partition {first.partition!r}{more}."
        ),
        why=f"The {other} {first.kind.value}, and the plan lacks its rows.",
        now=(
            "The rows are unchanged. Schedule a new plan; one that is not cancellable "
            "keeps writes out."
        ),
        instant=first.instant,
        action=first.action.value,
        partition=first.partition,
        file_id=first.file_id,
        conflicts=len(found),
    )


def endangering(plan: str, kind: TouchKind, other: str, touched: Touched) -> frozenset[FileGroupId]:
    """The file groups in which a plan would undo what another instant has written.

    A log that completes after a compaction was planned belongs to the new slice. Behind the result
    of a log compaction come the logs of later instants, whenever these complete.
    """
    if kind is TouchKind.COMPACTION or (kind is TouchKind.LOG_COMPACTION and other > plan):
        return touched.keys - touched.appended
    return touched.keys


def _find_overlap_with_plans(
    active: ActiveTimeline,
    instant: Instant,
    plan: str,
    kind: TouchKind,
    groups: frozenset[FileGroupId],
) -> Iterator[Conflicting]:
    touched = endangering(plan, kind, instant.requested, touched_by(active, instant))
    files = active.files_of(instant)
    action = files.started_as if files else instant.action
    for key in sorted(groups & touched):
        yield Conflicting(
            instant.requested, action, key.partition, key.file_id, ConflictKind.COMPLETED
        )
