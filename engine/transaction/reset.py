"""Resetting: a plan that was started and left goes back to where no attempt has started it.

A reset claims the plan first, so that no earlier attempt can commit, and removes what those have
made. A cancellable plan has one attempt only: it is cancelled instead.
"""

from dataclasses import dataclass
from enum import StrEnum

from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action, InstantFiles
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.start import start
from lakewarden.engine.transaction.state.context import (
    TABLE_SERVICES,
    Context,
    load_for_writing,
    reload_under_lock,
)
from lakewarden.engine.transaction.state.ledger_end import scope_of
from lakewarden.engine.transaction.state.live_attempt import live_attempt

# What is pending and has nothing to take back, and how it comes to its end.
_CONTINUED = {
    Action.INDEXING: "CALL build_index(op => 'resume', ...) continues it; cancel_plan ends it.",
    Action.CLEAN: "Clean again to finish it.",
    Action.RESTORE: "Restore to the same instant again to finish it.",
    Action.ROLLBACK: "The next clean or write finishes it; so does rollback_failed_writes.",
}
_REASON = "It had started and was left; it was rolled back on request."


class ResetOutcome(StrEnum):
    """What became of a plan."""

    REQUESTED_AGAIN = "requested_again"
    CANCELLED = "cancelled"
    # There was nothing to take back.
    NOT_STARTED = "not_begun"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Reset(Shown):
    """The answer of a reset."""

    instant: str
    action: Action
    outcome: ResetOutcome
    removed_files: int = 0


def reset(
    context: Context, instant: str, *, removes_plan: bool = False, dry_run: bool = False
) -> Reset:
    """Take back what dead attempts at a plan have done, and the plan too if that is wanted.

    Steps of `reset`: refuse, start, lock, reload, own-ledger, inflight, unlock, heartbeats. Those
    of `start` claim it. A crash leaves an inflight plan that was claimed and left, as it was
    before.
    """
    snapshot = load_for_writing(context)
    files = _refused_unless_left(context, snapshot, instant)
    is_cancelled = removes_plan or scope_of(snapshot, files).is_cancellable
    if files.inflight is None and not removes_plan:
        return Reset(instant=instant, action=files.started_as, outcome=ResetOutcome.NOT_STARTED)
    if is_cancelled:
        done = cancel(context, instant, _REASON, force=True, dry_run=dry_run)
        return Reset(
            instant=instant,
            action=files.started_as,
            outcome=ResetOutcome.CANCELLED,
            removed_files=done.removed_files,
        )
    outcome = ResetOutcome.REQUESTED_AGAIN if dry_run else _request_again(context, instant)
    return Reset(instant=instant, action=files.started_as, outcome=outcome)


def _request_again(context: Context, instant: str) -> ResetOutcome:
    attempt = start(context, instant).attempt
    if attempt is None:
        return ResetOutcome.COMPLETED
    with attempt:
        with context.lock.hold() as held:
            files = reload_under_lock(context).pending(instant)
            attempt.check_claim()
            held.assert_held()
            if files is not None and files.inflight is not None:
                context.storage.delete(files.inflight.entry.path)
        attempt.stop(leaves_plan=True)
    return ResetOutcome.REQUESTED_AGAIN


def _refused_unless_left(context: Context, snapshot: Snapshot, instant: str) -> InstantFiles:
    files = snapshot.pending(instant)
    if files is not None and files.started_as in _CONTINUED:
        raise _never_reset(files)
    if files is None or files.started_as not in TABLE_SERVICES:
        raise InvalidRequest(
            "unknown_plan",
            what=f"The timeline has no pending plan of a table service {instant}.",
            why="It may be complete, rolled back or archived, or was never published.",
            now="Look at the table's plans for those that are pending.",
            instant=instant,
        )
    live = live_attempt(context, read_ledger(context.storage, instant))
    if live is not None:
        raise Conflict(
            "plan_held",
            what=f"The {files.started_as.value} {instant} was not rolled back.",
            why=f"{live} is running it.",
            now="Wait until it ends, or cancel it.",
            instant=instant,
        )
    return files


def _never_reset(files: InstantFiles) -> InvalidRequest:
    action, instant = files.started_as, files.instant.requested
    return InvalidRequest(
        "not_reset",
        what=f"The {action.value} {instant} was not rolled back.",
        why="The next attempt continues the work of the dead one, so nothing is taken back.",
        now=_CONTINUED[action],
        instant=instant,
        action=action.value,
    )
