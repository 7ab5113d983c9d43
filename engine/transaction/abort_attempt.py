"""Aborting an attempt: what it does when it fails before its commit, so that nothing of it
stays."""

from collections.abc import Iterator
from contextlib import contextmanager

from lakewarden.engine.kernel.errors import (
    Conflict,
    CorruptTable,
    Defect,
    LakewardenError,
    Unavailable,
)
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import Ledger, read_ledger
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.rollback.cancelled_instant import abort
from lakewarden.engine.transaction.rollback.execution import RolledBack
from lakewarden.engine.transaction.state.claims import is_in_doubt
from lakewarden.engine.transaction.state.context import Context, load_for_writing
from lakewarden.engine.transaction.state.ledger_end import append_cancelled, scope_of
from lakewarden.engine.transaction.state.markers import delete_markers_of
from lakewarden.engine.transaction.state.plan_scope import INGESTION, PlanScope
from lakewarden.engine.transaction.sweep.sweep import (
    attempt_of,
    clean_up_instant,
    find_written,
    remove_written,
)


def abort_attempt(context: Context, attempt: Attempt, reason: str) -> RolledBack | None:
    """End an attempt that cannot commit, by law 1: nothing is removed before the ledger allows it.

    A write is cancelled and rolled back, and so is a plan that may be cancelled: it has one attempt
    only. Any other plan stays for the next attempt, which need not wait and removes what this one
    has left. Steps of `abort-attempt`: heartbeats, cancel, own-files. An attempt that was
    superseded or cancelled by others removes its own files. One that turns out to have committed is
    left as it is.
    """
    try:
        scope = _scope(context, attempt)
        is_one_try = attempt.action in INGESTION or scope.is_cancellable
        is_mine = read_ledger(context.storage, attempt.instant).last == attempt.claim
        attempt.stop(leaves_plan=is_mine and not is_one_try)
    finally:
        attempt.stop()
    # A process that ended it before the heartbeats stopped has left the files to this attempt.
    ledger = read_ledger(context.storage, attempt.instant)
    if is_one_try and not ledger.supersedes(attempt.number):
        ledger = append_cancelled(context, ledger, attempt.action, scope, reason=reason)
    if ledger.ends_in is LedgerEnd.CANCELLED:
        return abort(context, attempt.instant)
    if ledger.supersedes(attempt.number):
        _remove_own(context, attempt, ledger)
    return None


def _remove_own(context: Context, attempt: Attempt, ledger: Ledger) -> None:
    """Step `abort-attempt.own-files`: the files and markers of an attempt that was superseded.

    Where the instant has ended, its other traces are of no more use either: the heartbeat that Java
    sees may have come after the other attempt had removed it.
    """
    # A build of an index has no data files.
    if attempt.action is not Action.INDEXING:
        written = find_written(context.storage, attempt.instant)
        own = [file for file in written if attempt_of(file.name) == attempt.number]
        remove_written(context, ledger, attempt.number, own)
    if ledger.ends_in is LedgerEnd.COMMITTED:
        clean_up_instant(context.storage, ledger)
        return
    delete_markers_of(
        context.storage, attempt.instant, lambda name: attempt_of(name) == attempt.number
    )


def abort_attempt_after(context: Context, attempt: Attempt, cause: BaseException) -> None:
    """Give up because of an error or an interrupt, which the caller goes on to raise.

    If giving up fails as well, the next operation on the table does it, and the error says so.
    """
    try:
        abort_attempt(context, attempt, f"It failed: {_words(cause)}")
    except LakewardenError as error:
        cause.add_note(f"The next operation on the table deletes its files: {error}")


@contextmanager
def aborting_on_error(context: Context, attempt: Attempt) -> Iterator[None]:
    """Abort the attempt if what is done in here fails or is interrupted.

    A file that is missing because another process has ended the attempt is reported as that. Where
    it is not known whether the attempt has committed, everything stays as it is.
    """
    try:
        yield
    except BaseException as cause:
        loss = _loss_behind(attempt, cause)
        if is_in_doubt(cause, attempt.instant):
            attempt.stop()
        else:
            abort_attempt_after(context, attempt, cause)
        if loss is not None:
            raise loss from cause
        raise


def _loss_behind(attempt: Attempt, cause: BaseException) -> Conflict | None:
    """Whom the attempt has lost its claim to, where a fault may be nothing but his doing."""
    if isinstance(cause, CorruptTable | Defect | Unavailable):
        try:
            attempt.check_claim()
        except Conflict as loss:
            return loss
        except LakewardenError:
            # The first error tells more.
            return None
    return None


def _words(cause: BaseException) -> str:
    return str(cause) if isinstance(cause, Exception) else type(cause).__name__


def _scope(context: Context, attempt: Attempt) -> PlanScope:
    """What the plan of an attempt says of itself; nothing if it is off the timeline already."""
    snapshot = load_for_writing(context)
    files = snapshot.pending(attempt.instant)
    return PlanScope() if files is None else scope_of(snapshot, files)
