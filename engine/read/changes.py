"""Changes: the rows that the commits of a time window wrote.

Only files of the window are read, and they are merged among themselves: a record that arrived late
is a change even if it lost against an older row. Records that hold only some columns are the
exception; they are completed from the older files.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lakewarden.engine.formats.payloads import commit
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.plan_query import Query, narrow, read_spec
from lakewarden.engine.read.scan import Scan
from lakewarden.engine.read.spec import BlockJudge
from lakewarden.engine.read.times import Time, parse_time, required_time
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instant import COMPLETED_WRITES, Instant
from lakewarden.engine.timeline.timeline import Timeline
from lakewarden.engine.view.slices import Completions, FileSlice, SliceKey


@dataclass(frozen=True, slots=True)
class CompletedWithin:
    """The completions of a timeline, as far as they are among the given instants."""

    completions: Completions
    instants: frozenset[str]

    def completion_time(self, requested: str) -> str | None:
        return self.completions.completion_time(requested) if self.is_completed(requested) else None

    def is_completed(self, requested: str) -> bool:
        return requested in self.instants


def plan_changes(state: Snapshot, since: Time, until: Time | None, query: Query) -> Scan:
    """The scan for rows of commits completed in (since, until]."""
    if not state.config.has_meta_fields:
        raise _no_commit_times()
    start, end = required_time(since, state.zone), parse_time(until, state.zone)
    window = _window(state, start, end)
    instants = frozenset(instant.requested for instant in window)
    spec = replace(read_spec(state, query, None), commit_times=instants)
    if not window:
        return Scan((), (), spec)
    # The logs of version 6 carry their slice's name, so later slices have to be kept out by it.
    last = max(instants) if state.config.version < 8 else None
    visibility = state.visibility(last, CompletedWithin(state.timeline, instants))
    groups = state.file_groups(visibility, None, use_metadata=True)
    slices = {group.key: group.latest_merged() for group in groups}
    _check_kept(state, window, slices, visibility.replaced)
    if state.config.version < 8:
        judge = BlockJudge(completed=instants, skips_corrupt=True)
        spec = replace(spec, blocks=judge)
    spec = replace(spec, whole_slices=_whole_slices(state, slices, until=end))
    return narrow(state, Scan(tuple(slices.values()), (), spec))


def _window(state: Snapshot, since: str, until: str | None) -> Sequence[Instant]:
    """The completed writes of the window, archived ones too."""
    return [
        instant
        for instant in _completed_writes(state, since)
        if since < _moment(state, instant) and (until is None or _moment(state, instant) <= until)
    ]


def _completed_writes(state: Snapshot, since: str) -> Sequence[Instant]:
    timeline = state.timeline
    if state.config.version >= 8:
        return timeline.writes_completed_after(since)
    first = timeline.first_active
    if first is None or since >= first:
        return timeline.active.completed()
    return [
        instant
        for instant in timeline.instants()
        if instant.is_completed and instant.action in COMPLETED_WRITES
    ]


def _moment(state: Snapshot, instant: Instant) -> str:
    """What a window is measured by; version 6 records no completion times."""
    assert instant.completed is not None
    return instant.completed if state.config.version >= 8 else instant.requested


def _whole_slices(
    state: Snapshot, slices: Mapping[SliceKey, FileSlice], until: str | None
) -> Mapping[SliceKey, FileSlice]:
    """The full slices under those that have logs of the window but no base file of it."""
    bare = {key for key, slice_ in slices.items() if slice_.base_file is None}
    if not bare:
        return {}
    partitions = tuple(sorted({key.partition for key in bare}))
    within = state.timeline if until is None else CompletedUntil(state.timeline, until)
    groups = state.file_groups(state.visibility(completions=within), partitions, use_metadata=True)
    return {group.key: group.latest_merged() for group in groups if group.key in bare}


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


def _check_kept(
    state: Snapshot,
    window: Sequence[Instant],
    slices: Mapping[SliceKey, FileSlice],
    replaced: Mapping[SliceKey, str],
) -> None:
    """Refuse a window of which a clean has removed the newest files of a file group."""
    newest: dict[SliceKey, str] = {}
    for instant, metadata in _contents(state.timeline, window):
        newest |= dict.fromkeys(_base_files_written(metadata), instant.requested)
    for key, written in newest.items():
        kept = slices.get(key)
        if key in replaced or (kept is not None and kept.base_instant >= written):
            continue
        raise InvalidRequest(
            "history_cleaned",
            what=f"Changes of the commit {written} can't be read any more.",
            why=f"A clean removed what it wrote to file group {key.file_id} of {key.partition!r}.",
            now="Choose a later end for the window, or none; clean less often to keep more.",
            instant=written,
        )


def _contents(
    timeline: Timeline, window: Sequence[Instant]
) -> Iterator[tuple[Instant, commit.CommitMetadata]]:
    """What the writes of a window say of themselves, oldest first, archived ones included."""
    active = timeline.active
    archived = [instant for instant in window if active.files_of(instant) is None]
    if archived and active.layout.version > 1:
        wanted = frozenset(archived)
        first, last = min(archived).requested, max(archived).requested
        rows = list(timeline.archive.rows(COMPLETED_WRITES, first, last))
        for row in reversed(rows):
            if row.instant in wanted and row.metadata is not None:
                yield row.instant, commit.decode(row.metadata, str(row.instant))
    for instant in window:
        if active.files_of(instant) is not None:
            yield instant, commit.decode(active.read(instant), active.path(instant))


def _base_files_written(metadata: commit.CommitMetadata) -> Sequence[SliceKey]:
    return [
        SliceKey(partition, stat.file_id)
        for partition, stats in metadata.partition_to_write_stats.items()
        for stat in stats
        if not stat.log_files and stat.path
    ]


def _no_commit_times() -> InvalidRequest:
    return InvalidRequest(
        "unsupported_changes",
        what="The table does not record which commit wrote a row.",
        why="It has hoodie.populate.meta.fields=false.",
        now="Compare two snapshots with as_of, or write the table with meta fields.",
    )
