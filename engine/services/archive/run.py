"""Archiving: instants that nobody needs on the active timeline go to the archive.

Everything happens under the lock, since the plan must hold until the last file is gone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.moment import look, reload
from lakewarden.engine.plans.settings import STORAGE_THREADS
from lakewarden.engine.plans.standing import standing
from lakewarden.engine.plans.traces import clear_traces
from lakewarden.engine.services.archive.barriers import find_barriers
from lakewarden.engine.services.archive.checks import find_checked, read_ledgers
from lakewarden.engine.services.archive.move import Moved, move
from lakewarden.engine.services.archive.plan import ArchivePlan, limited, plan_archive
from lakewarden.engine.services.archive.result import Archived, TimelineCompacted
from lakewarden.engine.services.archive.settings import (
    ARCHIVE_ASYNC,
    ARCHIVE_AUTOMATIC,
    instants_at_once,
    limits_of,
    lsm_limits,
)
from lakewarden.engine.services.clean.settings import retention_of
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.archived.manifest import load_snapshot
from lakewarden.engine.timeline.archived.writer import LsmLimits, compact_and_clean, levels_to_merge
from lakewarden.engine.timeline.instant import Instant, time_text
from lakewarden.engine.timeline.ledger import Ledger, remove_ledger


def archive(context: Context, *, dry_run: bool = False) -> Archived:
    """Archive what may go, a bounded number of instants under each lock.

    Steps of `archive`: lock, reload, plan, move, compact, unlock. A crash anywhere leaves every
    instant active or archived or both; the next call goes on.
    """
    if dry_run:
        moment = look(context)
        plan = _drafted(context, moment, None).plan
        return _answer([told(context, moment, plan)], [], is_dry_run=True)
    plans: list[ArchivePlan] = []
    moves: list[Moved] = []
    at_once = instants_at_once(context.settings)
    while True:
        with context.lock.hold() as held:
            moment = reload(context)
            drafted = _drafted(context, moment, at_once)
            plans.append(told(context, moment, drafted.plan))
            if drafted.plan.instants:
                moves.append(_carried_out(context, held, moment, drafted))
        if len(drafted.plan.instants) < at_once:
            return _answer(plans, moves)


def archive_if_due(context: Context) -> Archived | None:
    """The archival that a write does after its commit; None where that is switched off."""
    is_on = context.settings[ARCHIVE_AUTOMATIC] and not context.settings[ARCHIVE_ASYNC]
    if not is_on or not draft_archive(context, look(context)).instants:
        return None
    return archive(context)


def draft_archive(context: Context, moment: Snapshot) -> ArchivePlan:
    """What an archival would take of a table first, and what holds it back; writes nothing."""
    return _drafted(context, moment, instants_at_once(context.settings)).plan


@dataclass(frozen=True, slots=True)
class _Drafted:
    """A plan, and the ledgers of its instants."""

    plan: ArchivePlan
    ledgers: Mapping[str, Ledger] = field(default_factory=dict)


def _drafted(context: Context, moment: Snapshot, at_most: int | None) -> _Drafted:
    limits, instants = limits_of(context.settings), moment.timeline.active.instants
    retention_of(context.settings)
    plan = plan_archive(instants, (), limits)
    if not plan.instants:
        return _Drafted(plan)
    barriers = list(find_barriers(context, moment))
    ledgers: dict[str, Ledger] = {}
    # Each turn leaves out at least one instant of the turn before.
    for _ in range(len(instants) + 1):
        plan = limited(plan_archive(instants, barriers, limits), at_most)
        ledgers |= read_ledgers(context, plan, known=ledgers.keys())
        barrier = find_checked(context, moment, plan, ledgers)
        if barrier is None:
            return _Drafted(plan, ledgers)
        barriers.append(barrier)
    raise AssertionError("an instant that a plan keeps was archived all the same")


def told(context: Context, moment: Snapshot, plan: ArchivePlan) -> ArchivePlan:
    """A plan that also says of a pending instant that holds it how old it is, and the remedy."""
    held = plan.held
    if held is None or held.instant is None:
        return plan
    for instant in moment.timeline.active.with_time(held.instant):
        if not instant.is_completed:
            why = f"{held.why} {standing(context, moment, instant)}"
            return replace(plan, held=replace(held, why=why))
    return plan


def run_timeline_compaction(context: Context, *, dry_run: bool = False) -> TimelineCompacted:
    """Merge the files of the archive, and remove those that no reader needs any more."""
    limits = lsm_limits(context.settings)
    if dry_run:
        return _dry_compaction(context, look(context), limits)
    began_ms = context.now_ms()
    with context.lock.hold():
        layout = reload(context).layout
        before = load_snapshot(context.storage, layout.history_folder)
        after = compact_and_clean(context.storage, layout.history_folder, limits)
    return TimelineCompacted(
        files_before=len(before.files),
        files_after=len(after.files),
        version=after.version,
        started=time_text(began_ms, layout.zone),
        milliseconds=context.now_ms() - began_ms,
    )


def _carried_out(context: Context, held: HeldLock, moment: Snapshot, drafted: _Drafted) -> Moved:
    moved = move(
        context.storage,
        moment.timeline.active,
        drafted.plan.instants,
        threads=context.settings[STORAGE_THREADS],
        forget=_Forgetting(context, drafted.ledgers),
        assert_held=held.assert_held,
    )
    folder = moment.layout.history_folder
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
        clear_traces(storage, ledger)
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


def _dry_compaction(context: Context, moment: Snapshot, limits: LsmLimits) -> TimelineCompacted:
    snapshot = load_snapshot(context.storage, moment.layout.history_folder)
    merged = levels_to_merge(snapshot.files, limits)
    return TimelineCompacted(
        files_before=len(snapshot.files),
        files_after=len(snapshot.files) - sum(len(files) - 1 for files in merged),
        version=snapshot.version,
        started=time_text(context.now_ms(), moment.layout.zone),
        is_dry_run=True,
    )
