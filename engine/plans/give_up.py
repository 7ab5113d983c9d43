"""Giving up: what an attempt does that fails before its commit, so that nothing of it stays."""

from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.plans.abort import abort
from lakewarden.engine.plans.attempt import Attempt
from lakewarden.engine.plans.cancelling import append_cancelled, scope_of
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.moment import look
from lakewarden.engine.plans.plan_scope import INGESTION, PlanScope
from lakewarden.engine.plans.undo import RolledBack
from lakewarden.engine.plans.written_files import find_written, is_of_attempt, remove_written
from lakewarden.engine.timeline.ledger import Ledger, read_ledger
from lakewarden.engine.timeline.ledger_entries import Claim
from lakewarden.engine.timeline.state import LedgerEnd


def give_up(context: Context, attempt: Attempt, reason: str) -> RolledBack | None:
    """End an attempt that cannot commit, by law 1: nothing is removed before the ledger allows it.

    A write is cancelled and rolled back, and so is a plan that may be cancelled: it has one attempt
    only. Any other plan stays for the next attempt, which removes what this one has left. An
    attempt that was superseded or cancelled by others removes its own files. One that turns out to
    have committed is left as it is.
    """
    attempt.stop()
    ledger = read_ledger(context.storage, attempt.instant)
    scope = _scope(context, attempt)
    is_one_try = attempt.action in INGESTION or scope.is_cancellable
    if is_one_try and not _is_superseded(ledger, attempt):
        ledger = append_cancelled(context, ledger, attempt.action, scope, reason=reason)
    if ledger.ends_in is LedgerEnd.CANCELLED:
        return abort(context, attempt.instant)
    if _is_superseded(ledger, attempt):
        written = find_written(context.storage, attempt.instant)
        own = [file for file in written if is_of_attempt(file, attempt.number)]
        remove_written(context, ledger, attempt.number, own)
    return None


def give_up_after(context: Context, attempt: Attempt, cause: Exception) -> None:
    """Give up because of an error, which the caller goes on to raise.

    If giving up fails as well, the next operation on the table does it, and the error says so.
    """
    try:
        give_up(context, attempt, f"It failed: {cause}")
    except LakewardenError as error:
        cause.add_note(f"What it wrote is removed by the next operation on the table: {error}")


def _scope(context: Context, attempt: Attempt) -> PlanScope:
    """What the plan of an attempt says of itself; nothing if it is off the timeline already."""
    moment = look(context)
    files = moment.pending(attempt.instant)
    return PlanScope() if files is None else scope_of(moment, files)


def _is_superseded(ledger: Ledger, attempt: Attempt) -> bool:
    claim = ledger.last
    return isinstance(claim, Claim) and claim.attempt > attempt.number
