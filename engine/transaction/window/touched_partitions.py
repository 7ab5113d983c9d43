"""Touched partitions: those in which something has come to be that a service may have to take."""

from collections.abc import Callable, Iterable
from functools import partial

from lakewarden.engine.conflicts.touched_groups import touched_by
from lakewarden.engine.formats.instant_metadata import restore, rollback
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.active import ActiveTimeline
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES, Action, Instant
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.service import Service
from lakewarden.engine.transaction.state.settings import STORAGE_THREADS

# What a service finds no new work in, by the action it began as; everything else counts.
_NO_WORK_IN = {
    # It leaves base files, and the logs on top of them are those of later writes.
    Service.COMPACTION: frozenset({Action.COMPACTION}),
    Service.LOG_COMPACTION: frozenset({Action.COMPACTION}),
    # It leaves base files as they are. Other compactions make new ones, which may be small, and
    # so may those be that a clustering itself has left.
    Service.CLUSTERING: frozenset({Action.LOG_COMPACTION}),
}
# What was there before may be back.
_UNDOING = frozenset({Action.ROLLBACK, Action.RESTORE})


def touched_since(
    context: Context, snapshot: Snapshot, service: Service, since: str, *, takes_own: bool
) -> tuple[str, ...]:
    """The partitions of all that has completed after a time; one small read for each of these."""
    active = snapshot.timeline.active
    instants = [
        instant
        for instant in active.completed_between(since, None, COMPLETED_WRITES | _UNDOING)
        # What was under way kept its file groups from the plan, whatever has become of it.
        if instant.requested < since or _counts(active, service, instant, takes_own=takes_own)
    ]
    threads = min(context.settings[STORAGE_THREADS], max(len(instants), 1))
    return _union(LocalExecutor(threads).map(partial(_partitions, active), instants))


def touched_between(before: Snapshot, now: Snapshot, service: Service) -> tuple[str, ...]:
    """The partitions of what has completed between two looks at the timeline."""
    known = set(before.timeline.active.completed(COMPLETED_WRITES | _UNDOING))
    active = now.timeline.active
    return _union(
        _partitions(active, instant)
        for instant in active.completed(COMPLETED_WRITES | _UNDOING)
        if instant not in known and _counts(active, service, instant, takes_own=True)
    )


def _counts(active: ActiveTimeline, service: Service, instant: Instant, *, takes_own: bool) -> bool:
    files = active.files_of(instant)
    started_as = instant.action if files is None else files.started_as
    if started_as is service.action and not takes_own:
        return False
    return started_as not in _NO_WORK_IN[service]


def _partitions(active: ActiveTimeline, instant: Instant) -> frozenset[str]:
    read = _OF_UNDOING.get(instant.action)
    if read is None:
        return frozenset(key.partition for key in touched_by(active, instant).keys)
    return read(active.read(instant), active.path(instant))


def _of_rollback(content: bytes, path: str) -> frozenset[str]:
    return frozenset(rollback.decode(content, path).partition_metadata)


def _of_restore(content: bytes, path: str) -> frozenset[str]:
    undone = restore.decode(content, path).hoodie_restore_metadata.values()
    return frozenset(
        partition
        for rollbacks in undone
        for one in rollbacks
        for partition in one.partition_metadata
    )


def _union(groups: Iterable[frozenset[str]]) -> tuple[str, ...]:
    return tuple(sorted(frozenset().union(*groups)))


_OF_UNDOING: dict[Action, Callable[[bytes, str], frozenset[str]]] = {
    Action.ROLLBACK: _of_rollback,
    Action.RESTORE: _of_restore,
}
