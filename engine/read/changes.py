"""Changes: the rows that commits of a time window wrote, as they are at the window's end."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakewarden.engine.formats.payloads import commit
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.plan_query import Query, narrow, read_spec
from lakewarden.engine.read.retention import check_retained
from lakewarden.engine.read.scan import Scan
from lakewarden.engine.read.table_state import TableState
from lakewarden.engine.read.times import parse_time
from lakewarden.engine.timeline.active import ActiveTimeline
from lakewarden.engine.timeline.instant import COMPLETED_WRITES, Instant
from lakewarden.engine.view.slices import Completions, SliceKey


@dataclass(frozen=True, slots=True)
class CompletedUntil:
    """The completions of a timeline as they stood at a moment."""

    completions: Completions
    until: str

    def completion_time(self, requested: str) -> str | None:
        completed = self.completions.completion_time(requested)
        return completed if completed is not None and completed <= self.until else None

    def is_completed(self, requested: str) -> bool:
        return self.completion_time(requested) is not None


def plan_changes(state: TableState, since: str, until: str | None, query: Query) -> Scan:
    """The scan for rows of commits completed in (since, until]."""
    if not state.config.has_meta_fields:
        raise _no_commit_times()
    start, end = parse_time(since), parse_time(until)
    assert start is not None
    check_retained(state.timeline, end)
    window = _window(state, start, end)
    spec = replace(
        read_spec(state, query, None), commit_times=frozenset(i.requested for i in window)
    )
    if not window:
        return Scan((), (), spec)
    completions = state.timeline if end is None else CompletedUntil(state.timeline, end)
    groups = state.file_groups(state.visibility(completions=completions), None, use_metadata=True)
    touched = _touched(state, window)
    slices = tuple(
        group.latest_merged() for group in groups if touched is None or group.key in touched
    )
    return narrow(state, Scan(slices, (), spec))


def _window(state: TableState, since: str, until: str | None) -> Sequence[Instant]:
    """The completed writes of the window, archived ones too."""
    instants = [instant for instant in _completed_writes(state, since) if _moment(state, instant) > since]
    return [instant for instant in instants if until is None or _moment(state, instant) <= until]


def _completed_writes(state: TableState, since: str) -> Sequence[Instant]:
    timeline = state.timeline
    first = timeline.first_active
    if first is None or since >= first:
        return timeline.active.completed()
    return [
        instant
        for instant in timeline.instants()
        if instant.is_completed and instant.action in COMPLETED_WRITES
    ]


def _moment(state: TableState, instant: Instant) -> str:
    """What a window is measured by; version 6 records no completion times."""
    assert instant.completed is not None
    return instant.completed if state.config.version >= 8 else instant.requested


def _touched(state: TableState, window: Sequence[Instant]) -> frozenset[SliceKey] | None:
    """The file groups the window's commits wrote to; None when some are archived."""
    active = state.timeline.active
    if any(active.files_of(instant) is None for instant in window):
        return None
    return frozenset(key for instant in window for key in _written(active, instant))


def _written(active: ActiveTimeline, instant: Instant) -> Sequence[SliceKey]:
    metadata = commit.decode(active.read(instant), active.path(instant))
    return [
        SliceKey(partition, stat.file_id)
        for partition, stats in metadata.partition_to_write_stats.items()
        for stat in stats
    ]


def _no_commit_times() -> InvalidRequest:
    return InvalidRequest(
        "unsupported_changes",
        what="The table does not record which commit wrote a row.",
        why="It has hoodie.populate.meta.fields=false.",
        now="Compare two snapshots with as_of, or write the table with meta fields.",
    )
