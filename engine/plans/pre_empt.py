"""Pre-emption: cancellable plans make room for those that are in a hurry, under one lock."""

from dataclasses import replace

from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.locks.plan_conflicts import overlapping_plans
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.locks.touched import PLANNED
from lakewarden.engine.plans.cancel import cancel_in
from lakewarden.engine.plans.cancellation import Ending
from lakewarden.engine.plans.cancelling import scope_of
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.live_attempt import live_attempt
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.ledger import read_ledger
from lakewarden.engine.timeline.state import LedgerEnd
from lakewarden.engine.view.slices import SliceKey


def may_be_pre_empted(context: Context, moment: Snapshot, plan: str) -> bool:
    """Whether a pending plan gives way: it is cancellable, or cancelled already.

    One that a live Java carries out does not, since Java does not look whether it was cancelled.
    """
    files = moment.pending(plan)
    if files is None or moment.ledger(plan).ends_in is LedgerEnd.CANCELLED:
        return True
    if not scope_of(moment, files).is_cancellable:
        return False
    held = live_attempt(context, moment.ledger(plan))
    return held is None or held.is_ours


def overlooking(context: Context, moment: Snapshot) -> Snapshot:
    """A moment as the maker of a plan sees it that is not cancellable: others make room for it."""
    active = moment.timeline.active
    plans = [plan.requested for plan in active.pending(PLANNED)]
    seen = replace(moment, ledgers={plan: read_ledger(context.storage, plan) for plan in plans})
    chosen = [plan for plan in plans if may_be_pre_empted(context, seen, plan)]
    return replace(moment, overlooked=frozenset(chosen))


def pre_empt(context: Context, moment: Snapshot, plan: str, by: str) -> bool:
    """Cancel a plan that stands in the way of another instant; False where it must be respected.

    The caller has the lock and has reloaded, and aborts the plan once the lock is free.
    """
    try:
        answer = cancel_in(context, moment, plan, f"pre-empted by {by}")
    except (InvalidRequest, Conflict):
        return False
    return answer.outcome is not Ending.ALREADY_COMMITTED


def pre_empt_plans(
    context: Context, held: HeldLock, moment: Snapshot, groups: frozenset[SliceKey], by: str
) -> tuple[str, ...]:
    """Cancel the cancellable plans that hold some of the file groups; their instants.

    For the maker of a plan that is not cancellable, who publishes it under the same lock.
    """
    chosen = [
        plan
        for plan in overlapping_plans(groups, moment.timeline.active)
        if may_be_pre_empted(context, moment, plan)
    ]
    if chosen:
        held.assert_held()
    return tuple(plan for plan in chosen if pre_empt(context, moment, plan, by))
