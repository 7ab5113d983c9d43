"""Archiving: instants that no read or write needs move from the active timeline to the archive.

Everything happens under the lock, since the plan must hold until the last file is gone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.metadata.writing.writer import refuse_unheard
from lakewarden.engine.services.archive.barriers import find_barriers, find_checked, read_ledgers
from lakewarden.engine.services.archive.move import Moved, move
from lakewarden.engine.services.archive.result import Archived, TimelineCompacted
from lakewarden.engine.services.retention.archive_plan import ArchivePlan, limited, plan_archive
from lakewarden.engine.services.retention.archive_settings import (
    ARCHIVE_ASYNC,
    ARCHIVE_AUTOMATIC,
    instants_at_once,
    limits_of,
    lsm_limits,
)
from lakewarden.engine.services.retention.clean_settings import retention_of
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.archived.manifest import load_manifest
from lakewarden.engine.timeline.archived.writer import LsmLimits, compact_and_clean, levels_to_merge
from lakewarden.engine.timeline.instants.instant import Instant, time_text
from lakewarden.engine.timeline.ledger.ledger import Ledger, remove_ledger
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.describe_pending import describe_pending
from lakewarden.engine.transaction.state.loading import load_for_writing, reload_under_lock
from lakewarden.engine.transaction.state.settings import STORAGE_THREADS
from lakewarden.engine.transaction.sweep.instant_cleanup import clean_up_instant


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
    if dry_run:
        return _dry_compaction(context, load_for_writing(context), limits)
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
        forget=_Forgetting(context, drafted.ledgers),
        assert_held=held.assert_held,
    )
    folder = snapshot.layout.history_folder
    compact_and_clean(context.storage, folder, lsm_limits(context.settings))
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


def _dry_compaction(context: Context, snapshot: Snapshot, limits: LsmLimits) -> TimelineCompacted:
    manifest = load_manifest(context.storage, snapshot.layout.history_folder)
    merged = levels_to_merge(manifest.files, limits)
    return TimelineCompacted(
        files_before=len(manifest.files),
        files_after=len(manifest.files) - sum(len(files) - 1 for files in merged),
        version=manifest.version,
        started=time_text(context.now_ms(), snapshot.layout.zone),
        is_dry_run=True,
    )
