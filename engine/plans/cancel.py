"""Cancelling: after it an instant can never commit, whatever an attempt at it still does."""

from dataclasses import dataclass
from enum import StrEnum

from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.plans.abort import abort
from lakewarden.engine.plans.cancelling import append_cancelled, scope_of
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.evidence import newest_sign
from lakewarden.engine.plans.moment import Moment, reload
from lakewarden.engine.plans.plan_scope import INGESTION, PlanScope
from lakewarden.engine.plans.rollback_plans import completed_rollback_of
from lakewarden.engine.plans.service import TABLE_SERVICES
from lakewarden.engine.plans.undo import RolledBack
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.ledger import read_ledger
from lakewarden.engine.timeline.roll_forward import roll_forward
from lakewarden.engine.timeline.state import BeatSign, LedgerEnd


class Ending(StrEnum):
    """What a request to cancel has come to."""

    CANCELLED = "cancelled"
    ALREADY_CANCELLED = "already_cancelled"
    ALREADY_COMMITTED = "already_committed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation:
    """The answer to a request to cancel; it holds for good."""

    instant: str
    outcome: Ending
    # When the instant has completed, if it has.
    completed: str | None = None
    # None while a live attempt is still to stop, and when everything was removed before.
    rolled_back: RolledBack | None = None


def cancel(
    context: Context, instant: str, reason: str, *, by: str | None = None, force: bool = False
) -> Cancellation:
    """Cancel a pending instant; possible while an attempt at it is alive.

    Steps: 1 lock, 2 reload, 3 completed, 4 rolled back or cancelled, 5 not cancellable, 6 append
    `cancelled`, 7 unlock; then abort is tried once. Whatever the answer says, it cannot be undone.
    """
    with context.lock.hold():
        moment = reload(context)
        answer = cancel_in(context, moment, instant, reason, by=by, force=force)
    if answer.outcome is Ending.ALREADY_COMMITTED:
        return answer
    if read_ledger(context.storage, instant).ends_in is not LedgerEnd.CANCELLED:
        return answer
    rolled_back = abort(context, instant)
    return Cancellation(instant=instant, outcome=answer.outcome, rolled_back=rolled_back)


def cancel_in(
    context: Context,
    moment: Moment,
    instant: str,
    reason: str,
    *,
    by: str | None = None,
    force: bool = False,
) -> Cancellation:
    """Steps 3 to 6, for whoever has the lock and has reloaded."""
    files = moment.pending(instant)
    if files is None:
        return _of_ended(context, moment, instant)
    ledger = moment.ledger(instant)
    if ledger.ends_in is LedgerEnd.CANCELLED:
        return Cancellation(instant=instant, outcome=Ending.ALREADY_CANCELLED)
    scope = scope_of(moment, files)
    _refuse(context, moment, files, scope, force=force)
    ended = append_cancelled(context, ledger, files.begun_as, scope, reason=reason, by=by)
    if ended.ends_in is LedgerEnd.COMMITTED:
        rolled = roll_forward(context.storage, moment.timeline, ended)
        completed = rolled.instant.completed
        return Cancellation(instant=instant, outcome=Ending.ALREADY_COMMITTED, completed=completed)
    return Cancellation(instant=instant, outcome=Ending.CANCELLED)


def _of_ended(context: Context, moment: Moment, instant: str) -> Cancellation:
    completed = moment.completed_write(instant)
    if completed is not None:
        return Cancellation(
            instant=instant, outcome=Ending.ALREADY_COMMITTED, completed=completed.completed
        )
    is_gone = completed_rollback_of(moment.timeline.active, instant) is not None
    if is_gone or read_ledger(context.storage, instant).ends_in is LedgerEnd.CANCELLED:
        return Cancellation(instant=instant, outcome=Ending.ALREADY_CANCELLED)
    raise InvalidRequest(
        "unknown_instant",
        what=f"The timeline has no pending instant {instant}.",
        why="It may have been archived, or never been published.",
        now="Look at the table's plans for what can be cancelled.",
        instant=instant,
    )


def _refuse(
    context: Context, moment: Moment, files: InstantFiles, scope: PlanScope, *, force: bool
) -> None:
    """Step 5: what must not be cancelled at all, and what only with force."""
    action, requested = files.begun_as, files.instant.requested
    if action not in TABLE_SERVICES | INGESTION:
        raise _not_cancellable(files, "Half of its effects cannot be taken back.", "Let it finish.")
    if force:
        return
    ledger = moment.ledger(requested)
    is_alive = newest_sign(context, ledger) is BeatSign.LIVE
    if is_alive and (action in INGESTION or ledger.last_claim is None):
        who = "A live write" if action in INGESTION else "A live attempt by Java Hudi"
        raise Conflict(
            "instant_held",
            what=f"{action.value} {requested} was not cancelled.",
            why=f"{who} holds it.",
            now="Wait for it, or cancel it with force.",
            instant=requested,
        )
    if action in TABLE_SERVICES and not scope.is_cancellable:
        reason = "It was scheduled as not cancellable, so others count on its being carried out."
        raise _not_cancellable(files, reason, "Carry it out, or cancel it with force.")


def _not_cancellable(files: InstantFiles, why: str, now: str) -> InvalidRequest:
    return InvalidRequest(
        "not_cancellable",
        what=f"{files.begun_as.value} {files.instant.requested} was not cancelled.",
        why=why,
        now=now,
        instant=files.instant.requested,
    )
