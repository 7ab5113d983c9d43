"""Touched file groups: which ones a completed write has changed, and which a pending plan will.

Read scopes: the partitions in which a write has searched for the rows that it decides by.

It decides by the rows that it found, and as much by those that were absent. Rows that other writers
insert meanwhile may be in a file group of their own, which the write does not touch. So partitions
are compared, and not file groups.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata import commit, compaction, replace
from lakewarden.engine.formats.instant_metadata.binding import TORN_PLAN
from lakewarden.engine.formats.instant_metadata.commit import (
    CommitMetadata,
    Operation,
    WriteStat,
)
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.timeline.instants.instant import Action, Instant
from lakewarden.engine.timeline.timeline import ActiveTimeline


class TouchKind(Enum):
    """What is done to the file groups, as far as it matters to other writers of them."""

    WRITE = "write"
    COMPACTION = "compaction"
    LOG_COMPACTION = "log compaction"
    CLUSTERING = "clustering"


@dataclass(frozen=True, slots=True)
class Touched:
    """The file groups an instant is about."""

    kind: TouchKind
    keys: frozenset[FileGroupId]
    # Those of the keys that got log files and nothing else.
    appended: frozenset[FileGroupId] = frozenset()
    # Those that rows came to, new or changed, and those that rows left; services only move them.
    brought: frozenset[FileGroupId] = frozenset()
    taken: frozenset[FileGroupId] = frozenset()


class Precedence(StrEnum):
    """Which of two writes to one file group stays, as the announcement of a write says."""

    INSTANT = "instant"
    """The older one."""
    FIRST = "first"
    """The one that has announced first; it had the lock when it did so."""


# In the extra metadata of an inflight file of ours: which write stays.
PRECEDENCE_KEY = "lakewarden.announcement"

_NOTHING = Touched(TouchKind.WRITE, frozenset())
_PRECEDENCES = {one.value: one for one in Precedence}


def touched_by(active: ActiveTimeline, instant: Instant) -> Touched:
    """What a completed write has written to or replaced."""
    payload, path = active.read(instant), active.path(instant)
    if instant.action is Action.REPLACE_COMMIT:
        metadata = replace.decode(payload, path)
        replaced = _keys(metadata.partition_to_replace_file_ids)
        moved = _written(metadata) | replaced
        if is_service(instant, metadata):
            return Touched(TouchKind.WRITE, moved)
        taken = _taken(metadata) | replaced
        return Touched(TouchKind.WRITE, moved, brought=_brought(metadata), taken=taken)
    written = commit.decode(payload, path)
    kind, keys, appended = _kind(instant, written), _written(written), _appended(written)
    if is_service(instant, written):
        return Touched(kind, keys, appended)
    return Touched(kind, keys, appended, _brought(written), _taken(written))


@dataclass(frozen=True, slots=True)
class Announced:
    """What a pending write says in its inflight file."""

    touched: Touched
    # Which of two writes stays; None if the file is not ours, and so need not name all groups.
    precedence: Precedence | None = None
    operation: str = ""
    # Partitions of which it names no file group.
    unnamed: frozenset[str] = frozenset()


def announced_by(active: ActiveTimeline, instant: Instant) -> Announced:
    """What a pending write says in its inflight file that it is about to touch; nothing before.

    A file that was cut short, or that cannot be read, says nothing.
    """
    files = active.files_of(instant)
    inflight = files.inflight if files else None
    if inflight is None:
        return Announced(_NOTHING)
    try:
        metadata = commit.decode(active.read(inflight.instant), inflight.entry.path)
    except CorruptTable:
        return Announced(_NOTHING)
    written = _written(metadata)
    keys = frozenset(key for key in written if key.file_id)
    touched = Touched(TouchKind.WRITE, keys, _appended(metadata) & keys)
    unnamed = frozenset(key.partition for key in written - keys)
    precedence = _PRECEDENCES.get(metadata.extra_metadata.get(PRECEDENCE_KEY, ""))
    return Announced(touched, precedence, metadata.operation_type or "", unnamed)


def is_service(instant: Instant, metadata: CommitMetadata) -> bool:
    """Whether what has completed was a table service: it moves rows, and brings none."""
    is_clustering = metadata.operation_type == Operation.CLUSTER
    return is_clustering or _kind(instant, metadata) is not TouchKind.WRITE


def planned_by(active: ActiveTimeline, instant: Instant) -> Touched:
    """What a pending plan is going to rewrite; nothing for an instant that has no plan.

    A torn plan counts as not published, and one that is gone was taken off the timeline.
    """
    files = active.files_of(instant)
    requested = files.requested if files else None
    decode = _PLANS.get(instant.action)
    if requested is None or decode is None:
        return _NOTHING
    try:
        return decode(active.read(requested.instant), requested.entry.path)
    except CorruptTable as error:
        if error.code not in (TORN_PLAN, "missing_file"):
            raise
        return _NOTHING


def _kind(instant: Instant, metadata: CommitMetadata) -> TouchKind:
    if metadata.operation_type == Operation.LOG_COMPACT:
        return TouchKind.LOG_COMPACTION
    is_compaction = metadata.compacted or metadata.operation_type == Operation.COMPACT
    return (
        TouchKind.COMPACTION
        if is_compaction and instant.action is Action.COMMIT
        else TouchKind.WRITE
    )


def _written(metadata: CommitMetadata) -> frozenset[FileGroupId]:
    return _of_stats(metadata, lambda stat: True)


def _brought(metadata: CommitMetadata) -> frozenset[FileGroupId]:
    """All but those that were only deleted from, as the counts say for sure."""
    return _of_stats(
        metadata,
        lambda stat: not stat.num_deletes or bool(stat.num_inserts or stat.num_update_writes),
    )


def _taken(metadata: CommitMetadata) -> frozenset[FileGroupId]:
    return _of_stats(metadata, lambda stat: bool(stat.num_deletes))


def _of_stats(
    metadata: CommitMetadata, is_wanted: Callable[[WriteStat], bool]
) -> frozenset[FileGroupId]:
    return _keys(
        {
            partition: [stat.file_id for stat in stats if is_wanted(stat)]
            for partition, stats in metadata.partition_to_write_stats.items()
        }
    )


def _appended(metadata: CommitMetadata) -> frozenset[FileGroupId]:
    return _written(metadata) - _of_stats(metadata, lambda stat: stat.log_files is None)


def _keys(file_ids: Mapping[str, Iterable[str]]) -> frozenset[FileGroupId]:
    return frozenset(
        FileGroupId(partition, one) for partition, ids in file_ids.items() for one in ids
    )


def _compacted(payload: bytes, path: str) -> Touched:
    plan = compaction.decode_plan(payload, path)
    keys = (FileGroupId(o.partition_path or "", o.file_id or "") for o in plan.operations)
    return Touched(TouchKind.COMPACTION, frozenset(keys))


def _log_compacted(payload: bytes, path: str) -> Touched:
    return Touched(TouchKind.LOG_COMPACTION, _compacted(payload, path).keys)


def _clustered(payload: bytes, path: str) -> Touched:
    plan = replace.decode_plan(payload, path).clustering_plan
    groups = plan.input_groups if plan else ()
    slices = [one for group in groups for one in group.slices]
    keys = (FileGroupId(one.partition_path or "", one.file_id or "") for one in slices)
    return Touched(TouchKind.CLUSTERING, frozenset(keys))


_PLANS = {
    Action.COMPACTION: _compacted,
    Action.LOG_COMPACTION: _log_compacted,
    Action.CLUSTERING: _clustered,
    # Until version 8 a clustering was requested as a replace commit.
    Action.REPLACE_COMMIT: _clustered,
}
PLANNED = frozenset(_PLANS)


class Change(Enum):
    """What may not happen to the rows of a partition while a write decides by them."""

    ROWS_BROUGHT = "brought rows"
    ROWS_TAKEN = "deleted rows"


@dataclass(frozen=True, slots=True, eq=False)
class ReadScope:
    """The partitions that a write has searched, and what other writers may not do there."""

    may_hold: Callable[[str], bool]
    invalidated_by: Change = Change.ROWS_BROUGHT

    @classmethod
    def everywhere(cls) -> "ReadScope":
        return cls(lambda partition: True)

    def invalidated(self, touched: Touched) -> tuple[FileGroupId, ...]:
        """Where another write has changed what this one has seen."""
        changed = touched.brought if self.invalidated_by is Change.ROWS_BROUGHT else touched.taken
        partitions = {path for path in {key.partition for key in changed} if self.may_hold(path)}
        return tuple(sorted(key for key in changed if key.partition in partitions))
