"""Archiving: instants that no read or write needs move from the active timeline to the archive.

Everything happens under the lock, since the plan must hold until the last file is gone.

What an archival has come to: what left the active timeline, and what the rest waits for.

Moving instants into the archive: first all of them are there, then they leave the timeline.

Readers take the union of both, and what is in both counts once, as active. The caller has the table
lock.

Archiving the timeline of the metadata table, which follows that of its table.

The data table's own instants must be found there as long as they are active: a rollback asks for
them. The caller has the data table's lock.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from lakewarden.engine.kernel.errors import Defect
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.metadata.writing.writer import refuse_unheard
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.services.archive.barriers import find_barriers, find_checked, read_ledgers
from lakewarden.engine.services.retention.archive_plan import (
    ArchiveHold,
    ArchiveLimits,
    ArchivePlan,
    Barrier,
    compaction_barrier,
    limited,
    plan_archive,
)
from lakewarden.engine.services.retention.settings import (
    ARCHIVE_ASYNC,
    ARCHIVE_AUTOMATIC,
    instants_at_once,
    limits_of,
    lsm_limits,
    retention_of,
)
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.archived.manifest import load_manifest
from lakewarden.engine.timeline.archived.writer import (
    LsmLimits,
    add_to_archive,
    compact_and_clean,
    levels_to_merge,
    tidy_archive,
)
from lakewarden.engine.timeline.instants.instant import (
    COMPLETED_WRITES,
    Action,
    Instant,
    Layout,
    StateFile,
    time_text,
)
from lakewarden.engine.timeline.ledger.ledger import Ledger, remove_ledger
from lakewarden.engine.timeline.removals import archived_form
from lakewarden.engine.timeline.timeline import ActiveTimeline, open_archive
from lakewarden.engine.transaction.state.context import Context, load_for_writing, reload_under_lock
from lakewarden.engine.transaction.state.pending_instants import describe_pending
from lakewarden.engine.transaction.state.settings import STORAGE_THREADS
from lakewarden.engine.transaction.sweep.sweep import clean_up_instant


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Archived(Shown):
    """The answer of an archival; it is true when something was archived, or would be."""

    instants: tuple[Instant, ...] = ()
    # The oldest write that stays active, and what keeps it there.
    oldest_kept: Instant | None = None
    held: Barrier | None = None
    files_deleted: int = 0
    # Instants that an earlier archival had written before it was cut short.
    found_archived: int = 0
    is_dry_run: bool = False

    def __bool__(self) -> bool:
        return bool(self.instants)

    def __str__(self) -> str:
        if self.why_nothing is not None:
            return f"Nothing was archived: {self.why_nothing}"
        verb = "would be" if self.is_dry_run else "were"
        newest = max(instant.requested for instant in self.instants)
        return f"{len(self.instants)} instants up to {newest} {verb} archived"

    @property
    def why_nothing(self) -> str | None:
        """In a sentence, why no instant was archived; None if some were."""
        if self.instants:
            return None
        return "There is nothing to archive." if self.held is None else self.held.why


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TimelineCompacted(Shown):
    """What a compaction of the archive has come to, in files of archived instants."""

    files_before: int
    files_after: int
    # The version of the archive's manifest that is current now.
    version: int
    # When it began, as a time of the timeline, and how long it took.
    started: str = ""
    milliseconds: int = 0
    is_dry_run: bool = False

    def __bool__(self) -> bool:
        return self.files_after != self.files_before


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What a move has come to."""

    files_deleted: int
    # Instants that an earlier archival, which was cut short, had written already.
    found_archived: int


def move(
    storage: Storage,
    active: ActiveTimeline,
    instants: Sequence[Instant],
    *,
    threads: int,
    now_ms: int = 0,
    forget: Callable[[Instant], None] | None = None,
    assert_held: Callable[[], None] | None = None,
) -> Moved:
    """Move completed instants out of the active timeline.

    Steps of `archive-move`: archive, verify, forget, pending, completed. A crash before
    `archive-move.verify` leaves them active, after it in both places. A completed file goes last,
    so that no process takes its instant for pending again. The oldest goes first, so that there is
    no hole. A process that has lost the lock stops before `archive-move.archive` and before
    `archive-move.forget`: another archival may have written a manifest without these instants.
    """
    _assert(assert_held)
    files = [active.files_of(instant) for instant in instants]
    known = _archived(storage, active.layout, instants)
    fresh = [instant for instant in instants if instant.key not in known]
    with_threads = LocalExecutor(threads)
    if fresh:
        rows = list(with_threads.map(partial(archived_form, active), fresh))
        add_to_archive(storage, active.layout, rows, now_ms)
        _verify(instants, _archived(storage, active.layout, instants))
    _assert(assert_held)
    for instant in instants:
        if forget is not None:
            forget(instant)
    states = [state for group in files if group is not None for state in group]
    pending = [state.entry.path for state in states if not state.instant.is_completed]
    deleted = sum(with_threads.map(storage.delete, pending))
    deleted += sum(storage.delete(state.entry.path) for state in states if _is_last(state))
    return Moved(files_deleted=deleted, found_archived=len(instants) - len(fresh))


def _assert(assert_held: Callable[[], None] | None) -> None:
    if assert_held is not None:
        assert_held()


def _is_last(state: StateFile) -> bool:
    return state.instant.is_completed


def _archived(
    storage: Storage, layout: Layout, instants: Sequence[Instant]
) -> frozenset[tuple[str, str]]:
    """Those of some instants that the archive has."""
    times = [instant.requested for instant in instants]
    found = open_archive(storage, layout).instants(min(times), max(times))
    return frozenset(instant.key for instant in found)


def _verify(instants: Sequence[Instant], archived: frozenset[tuple[str, str]]) -> None:
    lost = [instant for instant in instants if instant.key not in archived]
    if lost:
        raise Defect(
            "not_archived",
            what=f"The archive lacks {lost[0]}, which was just written there.",
            why="Nothing was removed from the active timeline.",
            instant=lost[0].requested,
        )


def archive_metadata(
    storage: Storage,
    active: ActiveTimeline,
    data: ActiveTimeline,
    limits: ArchiveLimits,
    lsm: LsmLimits,
    *,
    deltacommits: int,
    barriers: Iterable[Barrier] = (),
    threads: int = 1,
    dry_run: bool = False,
) -> Archived:
    """Archive what may go; `storage` and `active` are the metadata table's, `data` its table's.

    `deltacommits` is after how many of them it is compacted, `barriers` what else holds it back.
    """
    plan = draft_metadata_archive(
        active, data, limits, deltacommits=deltacommits, barriers=barriers
    )
    if not plan.instants or dry_run:
        return Archived(
            instants=plan.instants,
            oldest_kept=plan.oldest_kept,
            held=plan.held,
            is_dry_run=dry_run,
        )
    moved = move(storage, active, plan.instants, threads=threads)
    compact_and_clean(storage, active.layout.history_folder, lsm)
    return Archived(
        instants=plan.instants,
        oldest_kept=plan.oldest_kept,
        held=plan.held,
        files_deleted=moved.files_deleted,
        found_archived=moved.found_archived,
    )


def draft_metadata_archive(
    active: ActiveTimeline,
    data: ActiveTimeline,
    limits: ArchiveLimits,
    *,
    deltacommits: int,
    barriers: Iterable[Barrier] = (),
) -> ArchivePlan:
    """What an archival would take of the metadata table's timeline."""
    own = [compaction_barrier(active.instants, deltacommits), _of_data(data, limits)]
    return plan_archive(active.instants, [*barriers, *filter(None, own)], limits)


def _of_data(data: ActiveTimeline, limits: ArchiveLimits) -> Barrier | None:
    """The first write of the data table, or the first instant that has not ended there."""
    savepoints = (one for one in data.instants if one.action is Action.SAVEPOINT)
    passed = {one.requested for one in savepoints if limits.goes_beyond_savepoints}
    needed = [
        one
        for one in data.instants
        if not one.is_completed or (one.action in COMPLETED_WRITES and one.requested not in passed)
    ]
    if not needed:
        return None
    first = min(needed)
    return Barrier(
        hold=ArchiveHold.DATA_TABLE,
        before=first.requested,
        instant=first.requested,
        why=f"The table itself still has the {first.action.value} {first.requested}.",
    )


def archive(context: Context, *, dry_run: bool = False) -> Archived:
    """Archive what may go, a bounded number of instants under each lock.

    Steps of `archive`: lock, reload, plan, move, compact, unlock. A crash anywhere leaves every
    instant active or archived or both; the next call goes on.
    """
    if dry_run:
        snapshot = load_for_writing(context)
        plan = _drafted(context, snapshot, None).plan
        return _answer([reported(context, snapshot, plan)], [], is_dry_run=True)
    plans: list[ArchivePlan] = []
    moves: list[Moved] = []
    at_once = instants_at_once(context.settings)
    while True:
        with context.lock.hold() as held:
            snapshot = reload_under_lock(context)
            refuse_unheard(snapshot.metadata)
            drafted = _drafted(context, snapshot, at_once)
            plans.append(reported(context, snapshot, drafted.plan))
            if drafted.plan.instants:
                moves.append(_execute(context, held, snapshot, drafted))
        if len(drafted.plan.instants) < at_once:
            return _answer(plans, moves)


def archive_if_due(context: Context, seen: Snapshot | None = None) -> Archived | None:
    """The archival that a write does after its commit; None where that is switched off."""
    is_on = context.settings[ARCHIVE_AUTOMATIC] and not context.settings[ARCHIVE_ASYNC]
    if not is_on or not draft_archive(context, seen or load_for_writing(context)).instants:
        return None
    return archive(context)


def draft_archive(context: Context, snapshot: Snapshot) -> ArchivePlan:
    """What an archival would take of a table first, and what holds it back; writes nothing."""
    return _drafted(context, snapshot, instants_at_once(context.settings)).plan


@dataclass(frozen=True, slots=True)
class _Drafted:
    """A plan, and the ledgers of its instants."""

    plan: ArchivePlan
    ledgers: Mapping[str, Ledger] = field(default_factory=dict)


def _drafted(context: Context, snapshot: Snapshot, at_most: int | None) -> _Drafted:
    limits, instants = limits_of(context.settings), snapshot.timeline.active.instants
    retention_of(context.settings)
    plan = plan_archive(instants, (), limits)
    if not plan.instants:
        return _Drafted(plan)
    barriers = list(find_barriers(context, snapshot))
    ledgers: dict[str, Ledger] = {}
    # Each turn leaves out at least one instant of the turn before.
    for _ in range(len(instants) + 1):
        plan = limited(plan_archive(instants, barriers, limits), at_most)
        ledgers |= read_ledgers(context, plan, known=ledgers.keys())
        barrier = find_checked(context, snapshot, plan, ledgers)
        if barrier is None:
            return _Drafted(plan, ledgers)
        barriers.append(barrier)
    raise AssertionError("an instant that a plan keeps was archived all the same")


def reported(context: Context, snapshot: Snapshot, plan: ArchivePlan) -> ArchivePlan:
    """A plan that also says of a pending instant that holds it how old it is, and the remedy."""
    held = plan.held
    if held is None or held.instant is None:
        return plan
    for instant in snapshot.timeline.active.with_time(held.instant):
        if not instant.is_completed:
            why = f"{held.why} {describe_pending(context, snapshot, instant)}"
            return replace(plan, held=replace(held, why=why))
    return plan


def run_timeline_compaction(context: Context, *, dry_run: bool = False) -> TimelineCompacted:
    """Merge the files of the archive, and remove those that no reader needs any more."""
    limits = lsm_limits(context.settings)
    seen = load_for_writing(context)
    if dry_run or seen.layout.version == 1:
        # The archive of layout 1 has no manifest, and nothing in it is ever merged.
        return _dry_compaction(context, seen, limits, is_dry_run=dry_run)
    began_ms = context.now_ms()
    with context.lock.hold():
        layout = reload_under_lock(context).layout
        before = load_manifest(context.storage, layout.history_folder)
        after = compact_and_clean(context.storage, layout.history_folder, limits)
    return TimelineCompacted(
        files_before=len(before.files),
        files_after=len(after.files),
        version=after.version,
        started=time_text(began_ms, layout.zone),
        milliseconds=context.now_ms() - began_ms,
    )


def _execute(context: Context, held: HeldLock, snapshot: Snapshot, drafted: _Drafted) -> Moved:
    moved = move(
        context.storage,
        snapshot.timeline.active,
        drafted.plan.instants,
        threads=context.settings[STORAGE_THREADS],
        now_ms=context.now_ms(),
        forget=_Forgetting(context, drafted.ledgers),
        assert_held=held.assert_held,
    )
    tidy_archive(context.storage, snapshot.layout, lsm_limits(context.settings))
    return moved


@dataclass(frozen=True, slots=True)
class _Forgetting:
    """Removes what an instant has left besides its files."""

    context: Context
    ledgers: Mapping[str, Ledger]

    def __call__(self, instant: Instant) -> None:
        storage = self.context.storage
        ledger = self.ledgers.get(instant.requested, Ledger(instant.requested))
        clean_up_instant(storage, ledger)
        remove_ledger(storage, ledger)


def _answer(
    plans: Sequence[ArchivePlan],
    moves: Sequence[Moved],
    *,
    is_dry_run: bool = False,
) -> Archived:
    return Archived(
        instants=tuple(instant for plan in plans for instant in plan.instants),
        oldest_kept=plans[-1].oldest_kept,
        held=plans[-1].held,
        files_deleted=sum(moved.files_deleted for moved in moves),
        found_archived=sum(moved.found_archived for moved in moves),
        is_dry_run=is_dry_run,
    )


def _dry_compaction(
    context: Context, snapshot: Snapshot, limits: LsmLimits, *, is_dry_run: bool
) -> TimelineCompacted:
    manifest = load_manifest(context.storage, snapshot.layout.history_folder)
    merged = levels_to_merge(manifest.files, limits)
    return TimelineCompacted(
        files_before=len(manifest.files),
        files_after=len(manifest.files) - sum(len(files) - 1 for files in merged),
        version=manifest.version,
        started=time_text(context.now_ms(), snapshot.layout.zone),
        is_dry_run=is_dry_run,
    )
