"""Changes: the rows that the commits of a time window wrote.

Only files of the window are read, and they are merged among themselves: a record that arrived late
is a change even if it lost against an older row. Records that hold only some columns are the
exception; they are completed from the older files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lakewarden.engine.file_groups.file_names import BaseFile, DataFile
from lakewarden.engine.file_groups.slices import Completions, FileGroupId, FileSlice, Visibility
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.merge.spec import BlockJudge
from lakewarden.engine.read.query.answer import Scan
from lakewarden.engine.read.query.plan_query import (
    Query,
    Time,
    block_judge,
    narrow,
    parse_time,
    plan_query,
    read_spec,
    required_time,
)
from lakewarden.engine.read.query.removed_files import Past, Written, first_vanished, written_by
from lakewarden.engine.read.query.retention import check_whole
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES, Instant
from lakewarden.engine.timeline.timeline import Without


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
    """The scan for rows of commits completed in (since, until].

    A window that begins before the first commit needs no files that are gone by its end: it is the
    table as it was then.
    """
    if not state.config.has_meta_fields:
        raise no_commit_times()
    start, end = required_time(since, state.zone), parse_time(until, state.zone)
    if _is_before_all(state, start):
        return plan_query(state, query) if end is None else _as_of_end(state, end, query)
    return _of_window(state, changes_window(state, start, end), query)


def _is_before_all(state: Snapshot, time: str) -> bool:
    """Whether no write had completed by a time; the archive is asked where no active one had."""
    active = state.timeline.active.completed()
    if any(moment_of(state, instant) <= time for instant in active):
        return False
    return not any(
        instant.action in COMPLETED_WRITES and moment_of(state, instant) <= time
        for instant in state.timeline.archive.instants(None, time)
    )


def _as_of_end(state: Snapshot, end: str, query: Query) -> Scan:
    """The table as it was when a window ended."""
    last = _last(state, end)
    completions = Without(state.timeline, _completed_after(state, end))
    visibility = state.visibility(last, completions)
    groups = state.file_groups(visibility, None, use_metadata=True)
    check_whole(state, end, Past(visibility, groups))
    spec = replace(read_spec(state, query, None), blocks=block_judge(state, last))
    slices = tuple(group.latest_merged() for group in groups)
    return narrow(state, Scan(slices, (), spec))


def _last(state: Snapshot, end: str) -> str | None:
    """By what instants are kept out that began later; version 6 has no other measure."""
    return end if state.config.version < 8 else None


def _completed_after(state: Snapshot, end: str) -> frozenset[str]:
    if state.config.version < 8:
        return frozenset()
    return frozenset(one.requested for one in state.timeline.writes_completed_after(end))


@dataclass(frozen=True, slots=True)
class ChangesWindow:
    """The completed writes of a window, archived ones too, and those that completed later."""

    writes: Sequence[Instant]
    later: frozenset[str]

    @property
    def instants(self) -> frozenset[str]:
        return frozenset(instant.requested for instant in self.writes)


def _of_window(state: Snapshot, window: ChangesWindow, query: Query) -> Scan:
    """The rows that some writes have written, from their own files."""
    spec = replace(read_spec(state, query, None), commit_times=window.instants)
    if not window.writes:
        return Scan((), (), spec)
    # The logs of version 6 carry their slice's name, so later slices have to be kept out by it.
    last = _last(state, max(window.instants))
    written = written_by(state.timeline, window.writes)
    found = state.visibility(last, CompletedWithin(state.timeline, window.instants))
    visibility = replace(found, replaced={**written.replaced, **found.replaced})
    groups = state.file_groups(visibility, None, use_metadata=True)
    slices = {group.key: group.latest_merged() for group in groups}
    _check_kept(state, written, slices, visibility)
    if state.config.version < 8:
        judge = BlockJudge(completed=window.instants, skips_corrupt=True)
        spec = replace(spec, blocks=judge)
    spec = replace(spec, whole_slices=_whole_slices(state, slices, window.later))
    return narrow(state, Scan(tuple(slices.values()), (), spec))


def changes_window(state: Snapshot, since: str, until: str | None) -> ChangesWindow:
    """The writes that completed after a moment, and no later than another one."""
    after = [one for one in _completed_writes(state, since) if moment_of(state, one) > since]
    later = [one for one in after if until is not None and moment_of(state, one) > until]
    gone = frozenset(one.requested for one in later)
    return ChangesWindow([one for one in after if one.requested not in gone], gone)


def _completed_writes(state: Snapshot, since: str) -> Sequence[Instant]:
    timeline = state.timeline
    if state.config.version >= 8:
        return timeline.writes_completed_after(since)
    if timeline.is_active_since(since):
        return timeline.active.completed()
    return [
        instant
        for instant in timeline.instants()
        if instant.is_completed and instant.action in COMPLETED_WRITES
    ]


def moment_of(state: Snapshot, instant: Instant) -> str:
    """What a window is measured by; version 6 records no completion times."""
    assert instant.completed is not None
    return instant.completed if state.config.version >= 8 else instant.requested


def _whole_slices(
    state: Snapshot, slices: Mapping[FileGroupId, FileSlice], later: frozenset[str]
) -> Mapping[FileGroupId, FileSlice]:
    """The full slices under those that have logs of the window but no base file of it."""
    bare = {key for key, slice_ in slices.items() if slice_.base_file is None}
    if not bare:
        return {}
    partitions = tuple(sorted({key.partition for key in bare}))
    visibility = state.visibility(completions=Without(state.timeline, later))
    groups = state.file_groups(visibility, partitions, use_metadata=True)
    return {group.key: group.latest_merged() for group in groups if group.key in bare}


def _check_kept(
    state: Snapshot,
    written: Written,
    slices: Mapping[FileGroupId, FileSlice],
    visibility: Visibility,
) -> None:
    """Refuse a window of which a clean has removed files that nothing in it has superseded."""
    for one in written.files:
        if not visibility.is_replaced(one.key) and not _is_kept(
            state, one.file, slices.get(one.key)
        ):
            why = f"A clean removed {one.path}, which it wrote to file group {one.key.file_id}."
            raise cleaned(one.instant, why)
    missed = first_vanished(state, slices.values())
    if missed is not None:
        raise cleaned(missed.removed.instant, missed.why)


def cleaned(instant: str, why: str) -> InvalidRequest:
    """The refusal of a window that has lost files of a commit."""
    return InvalidRequest(
        "history_cleaned",
        what=f"Lakewarden can no longer read the changes of the commit {instant}.",
        why=why,
        now="Choose a later end for the window, or none. To keep more, clean less.",
        instant=instant,
    )


def _is_kept(state: Snapshot, file: DataFile, slice_: FileSlice | None) -> bool:
    """Whether a slice has a file, or a base file that was started when it was complete."""
    if slice_ is None:
        return False
    since = "" if slice_.base_file is None else slice_.base_instant
    if isinstance(file, BaseFile):
        return since >= file.instant
    if any(log.name == file.name for log in slice_.log_files):
        return True
    if state.config.version < 8:
        return since > file.instant
    return since > (state.timeline.completion_time(file.instant) or file.instant)


def no_commit_times() -> InvalidRequest:
    """The refusal for a table whose rows do not say who wrote them."""
    return InvalidRequest(
        "unsupported_changes",
        what="The table does not record which commit wrote a row.",
        why="It has hoodie.populate.meta.fields=false.",
        now="Compare two snapshots with as_of, or write the table with meta columns.",
    )
