"""Preemption: cancellable plans make room for those that are in a hurry, under one lock."""

from dataclasses import replace

from lakewarden.engine.conflicts.plan_conflicts import overlapping_plans
from lakewarden.engine.conflicts.touched_groups import PLANNED
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.kernel.events import PLAN_GAVE_WAY, Event
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.cancel.cancel import cancel_in
from lakewarden.engine.transaction.cancel.cancellation import Ending
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.ledger_end import scope_of
from lakewarden.engine.transaction.state.live_attempt import live_attempt


def may_be_preempted(context: Context, snapshot: Snapshot, plan: str) -> bool:
    """Whether a pending plan gives way: it is cancellable, or cancelled already.

    One that a live Java executes does not, since Java does not look whether it was cancelled.
    """
    files = snapshot.pending(plan)
    if files is None or snapshot.ledger(plan).ends_in is LedgerEnd.CANCELLED:
        return True
    if not scope_of(snapshot, files).is_cancellable:
        return False
    held = live_attempt(context, snapshot.ledger(plan))
    return held is None or held.is_ours


def without_preemptible(context: Context, snapshot: Snapshot) -> Snapshot:
    """A moment as the maker of a plan sees it that is not cancellable: others make room for it."""
    active = snapshot.timeline.active
    plans = [plan.requested for plan in active.pending(PLANNED)]
    seen = replace(snapshot, ledgers={plan: read_ledger(context.storage, plan) for plan in plans})
    chosen = [plan for plan in plans if may_be_preempted(context, seen, plan)]
    return replace(snapshot, preemptible=frozenset(chosen))


def preempt(context: Context, snapshot: Snapshot, plan: str, by: str) -> bool:
    """Cancel a plan that stands in the way of another instant; False where it must be respected.

    The caller has the lock and has reloaded, and aborts the plan once the lock is free.
    """
    try:
        answer = cancel_in(context, snapshot, plan, f"pre-empted by {by}")
    except (InvalidRequest, Conflict):
        return False
    if answer.outcome is Ending.ALREADY_COMMITTED:
        return False
    context.ports.events(Event(PLAN_GAVE_WAY, {"plan": plan, "to": by}))
    return True


def preempt_plans(
    context: Context, held: HeldLock, snapshot: Snapshot, groups: frozenset[FileGroupId], by: str
) -> tuple[str, ...]:
    """Cancel the cancellable plans that hold some of the file groups; their instants.

    For the maker of a plan that is not cancellable, who publishes it under the same lock.
    """
    chosen = [
        plan
        for plan in overlapping_plans(groups, snapshot.timeline.active)
        if may_be_preempted(context, snapshot, plan)
    ]
    if chosen:
        held.assert_held()
    return tuple(plan for plan in chosen if preempt(context, snapshot, plan, by))
