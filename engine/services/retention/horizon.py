"""The horizon: the earliest instant whose view of the table a clean keeps readable.

The retained commits are the ones that completed last: a reader that began before the oldest of them
completed may still be at work. The horizon is the first of them by requested time, since that is
how readers name a past; nothing that was started before it has completed since.

The point to go back to: which instants stand between it and now, and which files it needs.

The table as it was when an instant completed is what is left without all that completed later. A
compaction counts by when it was planned, as in Java: the logs written since are on top of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakewarden.engine.file_groups.file_names import DataFile
from lakewarden.engine.file_groups.slices import Visibility, load_visibility
from lakewarden.engine.formats.instant_metadata.clean import CleanPolicy
from lakewarden.engine.kernel.clock import Zone
from lakewarden.engine.metadata.writing.builds import read_notes
from lakewarden.engine.services.retention.settings import CleanRetention
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import TableType
from lakewarden.engine.timeline.instants.instant import (
    Action,
    Instant,
    InstantFiles,
    epoch_ms,
    time_text,
)
from lakewarden.engine.timeline.timeline import Without
from lakewarden.engine.transaction.state.context import TABLE_SERVICES
from lakewarden.engine.transaction.state.plan_scope import INGESTION


def undone_by(snapshot: Snapshot, target: Instant) -> tuple[InstantFiles, ...]:
    """The instants that a restore to a completed write takes back, newest first.

    What has not completed is newer than all that has.
    """
    is_mor = snapshot.config.table_type is TableType.MERGE_ON_READ
    found = [
        files
        for files in snapshot.timeline.active.files
        if files.started_as in INGESTION | TABLE_SERVICES
        and _is_later(files, target, is_mor=is_mor)
    ]
    pending = [files for files in found if files.completed is None]
    completed = [files for files in found if files.completed is not None]
    pending.sort(key=lambda files: files.instant.requested, reverse=True)
    completed.sort(key=lambda files: files.instant.completed or "", reverse=True)
    return (*pending, *completed)


def _is_later(files: InstantFiles, target: Instant, *, is_mor: bool) -> bool:
    instant = files.instant
    if instant.key == target.key:
        return False
    if instant.completed is None:
        # A plan from before is still a good one; a write is not going to be.
        return instant.requested > target.requested or files.started_as in INGESTION
    if is_mor and instant.action is Action.COMMIT:
        return instant.requested > target.requested
    return instant.completed > (target.completed or "")


def visibility_without(snapshot: Snapshot, gone: frozenset[str]) -> Visibility:
    """How the table is seen once some instants are no more."""
    active = snapshot.timeline.active
    completions = Without(snapshot.timeline, gone)
    whole = load_visibility(active, completions, names_decide=False)
    pending = {key: plan for key, plan in whole.pending_compactions.items() if plan not in gone}
    return Visibility(completions=completions, replaced=whole.replaced, pending_compactions=pending)


def all_files(state: Snapshot) -> Mapping[str, tuple[DataFile, ...]]:
    """All data files of the table that are known."""
    return state.source(use_metadata=True).files()


_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """The earliest instant to retain, or why there is none."""

    instant: Instant | None = None
    # The pending instant without which it would be later.
    held_by: Instant | None = None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """The writes of the active timeline, in the order of their requested times."""

    completed: Sequence[Instant]
    # Plans of services among them.
    pending: Sequence[Instant]
    # Builds of indexes, each with the instant as of which it reads the table.
    builds: Sequence[tuple[Instant, str]] = ()


def writes_of(snapshot: Snapshot) -> Writes:
    """The completed writes, and what may become one."""
    active = snapshot.timeline.active
    notes = (
        (one, read_notes(snapshot.storage, one.requested))
        for one in active.pending((Action.INDEXING,))
    )
    return Writes(
        completed=active.completed(),
        pending=active.pending(INGESTION | TABLE_SERVICES),
        builds=tuple((one, found.upto) for one, found in notes if found is not None),
    )


def find_horizon(
    writes: Writes,
    retention: CleanRetention,
    *,
    now_ms: int,
    zone: Zone,
    last: str | None = None,
    commits_max: int | None = None,
) -> Horizon:
    """The horizon for now; `last` is that of the last clean, behind which nothing is kept any more.

    With `commits_max` it is at most so many commits after the last one, or after the oldest commit.
    """
    retained = _retained(writes.completed, retention, now_ms, zone)
    if not retained:
        return Horizon(why=_too_few(writes.completed, retention))
    earliest = min(retained)
    earliest, is_limited = _limited(writes.completed, earliest, last, commits_max)
    since_ms = now_ms - retention.build_wait_seconds * 1000
    horizon = _held_by_build(writes, _held_back(writes, earliest), since_ms, zone)
    if horizon.held_by is None and is_limited:
        return Horizon(instant=earliest, why=f"At most {commits_max} commits are cleaned at once.")
    return horizon


def _retained(
    completed: Sequence[Instant], retention: CleanRetention, now_ms: int, zone: Zone
) -> Sequence[Instant]:
    """The commits that are kept; empty when nothing is old yet."""
    ordered = sorted(completed, key=_completion)
    if retention.policy is CleanPolicy.KEEP_LATEST_BY_HOURS:
        since = time_text(now_ms - retention.hours * _HOUR_MS, zone)
        return [instant for instant in ordered if _completion(instant) >= since]
    return ordered[-retention.commits :] if len(ordered) > retention.commits else []


def _too_few(completed: Sequence[Instant], retention: CleanRetention) -> str:
    if retention.policy is CleanPolicy.KEEP_LATEST_BY_HOURS:
        return f"No commit completed in the last {retention.hours} hours, so none is old."
    return f"There are {len(completed)} commits, and {retention.commits} are retained."


def _limited(
    completed: Sequence[Instant], earliest: Instant, last: str | None, commits_max: int | None
) -> tuple[Instant, bool]:
    if not commits_max:
        return earliest, False
    later = [instant for instant in sorted(completed) if instant.requested >= (last or "")]
    if len(later) <= commits_max or later[commits_max].requested >= earliest.requested:
        return earliest, False
    return later[commits_max], True


def _held_back(writes: Writes, earliest: Instant) -> Horizon:
    """What is under way may build upon the table as it was when it began."""
    first = min(writes.pending, default=None)
    if first is None or first.requested > earliest.requested:
        return Horizon(instant=earliest, why=f"The first retained commit is {earliest.requested}.")
    before = [one for one in writes.completed if one.requested < first.requested]
    return Horizon(
        instant=max(before, default=None),
        held_by=first,
        why=f"The {first.action.value} {first.requested} has not ended.",
    )


def _held_by_build(writes: Writes, horizon: Horizon, since_ms: int, zone: Zone) -> Horizon:
    """A build of an index reads the table as it was; it keeps that for a while, dead or alive.

    Those that were planned before `since_ms` do so no more.
    """
    if horizon.instant is None:
        return horizon
    for build, upto in writes.builds:
        began_ms = epoch_ms(build.requested, zone) or 0
        is_older = upto < horizon.instant.requested
        if is_older and began_ms > since_ms:
            before = [one for one in writes.completed if one.requested <= upto]
            why = f"The index build {build.requested} reads the table as of {upto or 'its start'}."
            return Horizon(instant=max(before, default=None), held_by=build, why=why)
    return horizon


def _completion(instant: Instant) -> str:
    assert instant.completed is not None
    return instant.completed
