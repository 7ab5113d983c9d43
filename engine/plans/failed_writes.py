"""Failed writes: what was begun and not ended is published if it had committed, else undone.

A live attempt is never touched, whatever the policy. Plans of services wait for whoever carries
them out; only those that were cancelled are rolled back here.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.plans.cancelling import append_cancelled, append_withdrawn, scope_of
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.evidence import is_recent, pending_state, standard_sign
from lakewarden.engine.plans.moment import (
    Moment,
    is_committed,
    look,
    pending_ledgers,
    reload,
    torn_completion,
)
from lakewarden.engine.plans.plan_scope import INGESTION, PlanScope
from lakewarden.engine.plans.rollback_plans import PendingRollback, Rollbacks, pending_rollbacks
from lakewarden.engine.plans.service import TABLE_SERVICES
from lakewarden.engine.plans.settings import FailedWrites, failed_writes_policy
from lakewarden.engine.plans.undo import Undoing, begin_undoing, carry_out, unpublish
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.instant import Action
from lakewarden.engine.timeline.ledger import Ledger, read_ledger
from lakewarden.engine.timeline.roll_forward import RolledForward
from lakewarden.engine.timeline.state import BeatSign, InstantState, LedgerEnd

_DEAD = "It gave no sign of life any more."
_BEGUN_ELSEWHERE = "Its rollback was begun and left."


class Repair(StrEnum):
    """What was done about an instant."""

    ROLLED_FORWARD = "rolled_forward"
    ROLLED_BACK = "rolled_back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """An instant that hung in the air and does so no more."""

    instant: str
    action: Action
    repair: Repair
    rollback: str | None = None
    files_deleted: int = 0
    # Published behind others that completed later: an incremental reader may have moved on.
    is_late: bool = False


@dataclass(frozen=True, slots=True)
class _Due:
    """What has to be undone: a pending instant, a rollback without one, or mere remains."""

    files: InstantFiles | None = None
    rollback: PendingRollback | None = None
    is_remains: bool = False


def settle(context: Context) -> tuple[Settled, ...]:
    """Bring every instant to its end that nobody works on; without any it is one look at the table.

    A crash anywhere leaves instants that the next call settles.
    """
    if not _is_needed(context):
        return ()
    with context.lock.hold() as held:
        moment = reload(context)
        rollbacks = _whole_rollbacks(context, moment)
        begun = [
            undoing
            for due in list(_all_due(context, moment, rollbacks))
            if (undoing := _begun(context, held, moment, rollbacks, due)) is not None
        ]
    settled = [_forwarded(moment, rolled) for rolled in moment.rolled_forward]
    for undoing in begun:
        done = carry_out(context, undoing)
        if done is not None:
            settled.append(
                Settled(
                    instant=done.instant,
                    action=done.action,
                    repair=Repair.ROLLED_BACK,
                    rollback=done.rollback,
                    files_deleted=done.files_deleted,
                )
            )
    return tuple(settled)


def _is_needed(context: Context) -> bool:
    """Whether there seems to be anything to do; a hint, as the lock is not held."""
    moment = look(context)
    active = moment.timeline.active
    try:
        if torn_completion(context, moment) is not None:
            return True
        if not active.pending():
            return False
        ledgers = pending_ledgers(context, moment)
        if any(map(is_committed, ledgers.values())):
            return True
        rollbacks = pending_rollbacks(active)
        due = _all_due(context, replace(moment, ledgers=ledgers), rollbacks)
        return bool(rollbacks.torn) or next(due, None) is not None
    except CorruptTable:
        # Files of the timeline go away while others work; under the lock they stay.
        return True


def _whole_rollbacks(context: Context, moment: Moment) -> Rollbacks:
    """The rollbacks under way; a torn plan was never published, and goes."""
    rollbacks = pending_rollbacks(moment.timeline.active)
    for entry in rollbacks.torn:
        context.storage.delete(entry.path)
    return rollbacks


def _all_due(context: Context, moment: Moment, rollbacks: Rollbacks) -> Iterator[_Due]:
    for files in moment.timeline.active.files:
        is_candidate = files.begun_as in INGESTION | TABLE_SERVICES
        if is_candidate and not files.instant.is_completed:
            state = pending_state(context, moment, rollbacks, files)
            if state is InstantState.ROLLED_BACK or _is_torn_plan(context, files, state):
                yield _Due(files, is_remains=True)
            elif _is_due(context, moment, rollbacks, files, state):
                yield _Due(files)
    for target, pending in rollbacks.pending.items():
        if moment.pending(target) is None:
            ledger = read_ledger(context.storage, target)
            if _may_take_over(context, ledger, pending):
                yield _Due(rollback=pending)


def _is_due(
    context: Context,
    moment: Moment,
    rollbacks: Rollbacks,
    files: InstantFiles,
    state: InstantState,
) -> bool:
    ledger = moment.ledger(files.instant.requested)
    match state:
        case InstantState.CANCELLED_ROLLING_BACK | InstantState.CANCELLED_ROLLBACK_DUE:
            return True
        case InstantState.ROLLING_BACK_ELSEWHERE:
            return _may_take_over(context, ledger, rollbacks.pending[ledger.instant])
        case InstantState.INFLIGHT_ABANDONED | InstantState.REQUESTED:
            return files.begun_as in INGESTION and _is_given_up(context, ledger, files)
        case _:
            return False


def _is_torn_plan(context: Context, files: InstantFiles, state: InstantState) -> bool:
    """Whether a plan was cut short by a crash long ago; it counts as not published."""
    if state is not InstantState.UNKNOWN or files.requested is None:
        return False
    return not is_recent(context, files.requested.entry.modified_ms)


def _is_given_up(context: Context, ledger: Ledger, files: InstantFiles) -> bool:
    """Whether the policy has a write undone that gives no sign of life."""
    policy = failed_writes_policy(context.settings)
    if policy is FailedWrites.LAZY and ledger.last_claim is None:
        # Where others may be at work, one who never gave a sign has a while to give the first.
        never_lived = standard_sign(context, ledger.instant) is BeatSign.NONE
        newest_ms = max(file.entry.modified_ms for file in files)
        return not (never_lived and is_recent(context, newest_ms))
    return policy is not FailedWrites.NEVER


def _may_take_over(context: Context, ledger: Ledger, pending: PendingRollback) -> bool:
    """Whether a rollback is left: ours ends in the ledger and can't be done twice; Java's can."""
    if ledger.ends_in is LedgerEnd.CANCELLED:
        return True
    is_alive = standard_sign(context, pending.instant) is BeatSign.LIVE
    return not (is_alive or is_recent(context, pending.published_ms))


def _begun(
    context: Context, held: HeldLock, moment: Moment, rollbacks: Rollbacks, due: _Due
) -> Undoing | None:
    """Begin with what is due, under the lock; None where nothing is left to carry out."""
    if due.files is None:
        assert due.rollback is not None
        return _taken_over(context, held, moment, due.rollback)
    if due.is_remains:
        _remove_remains(context, held, due.files)
        return None
    ledger = append_cancelled(
        context,
        moment.ledger(due.files.instant.requested),
        due.files.begun_as,
        scope_of(moment, due.files),
        reason=_DEAD,
    )
    if ledger.ends_in is LedgerEnd.COMMITTED:
        return None
    return begin_undoing(context, held, moment, rollbacks, due.files)


def _taken_over(
    context: Context, held: HeldLock, moment: Moment, pending: PendingRollback
) -> Undoing:
    """A rollback whose target has completed, or has left the timeline already."""
    reference = pending.plan.instant_to_rollback
    assert reference is not None
    ledger, action = read_ledger(context.storage, pending.target), Action(reference.action)
    has_completed = moment.completed_write(pending.target) is not None
    if has_completed or ledger.ends_in is LedgerEnd.COMMITTED:
        append_withdrawn(context, ledger, action, reason=_BEGUN_ELSEWHERE)
    else:
        append_cancelled(context, ledger, action, PlanScope(), reason=_BEGUN_ELSEWHERE)
    undoing = Undoing(pending, is_taken_over=True)
    unpublish(context, held, moment, undoing)
    return undoing


def _remove_remains(context: Context, held: HeldLock, files: InstantFiles) -> None:
    """What is left of an instant that is rolled back already, or was never really published."""
    held.assert_held()
    for file in (files.inflight, files.requested):
        if file is not None:
            context.storage.delete(file.entry.path)


def _forwarded(moment: Moment, rolled: RolledForward) -> Settled:
    completed = rolled.instant.completed or ""
    later = (other.completed or "" for other in moment.timeline.active.completed())
    return Settled(
        instant=rolled.instant.requested,
        action=rolled.instant.action,
        repair=Repair.ROLLED_FORWARD,
        is_late=rolled.is_new and any(time > completed for time in later),
    )
