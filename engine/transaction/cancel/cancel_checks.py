"""What may be cancelled: everything else is refused by name, with what to do instead."""

from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.live_attempt import LiveAttempt, live_attempt
from lakewarden.engine.transaction.state.plan_scope import INGESTION, PlanScope
from lakewarden.engine.transaction.state.service import TABLE_SERVICES

# Actions that are never cancelled, why, and what to do about one that hangs.
_NEVER = {
    Action.ROLLBACK: (
        "It removes a failed instant, whose files would stay otherwise.",
        "The next clean or write finishes it; so does rollback_failed_writes.",
    ),
    Action.RESTORE: (
        "A half-finished restore leaves the table inconsistent.",
        "Restore to the same savepoint again to finish it.",
    ),
    Action.INDEXING: (
        "Writers already maintain the index.",
        "Run it, or drop the index.",
    ),
}
_NEVER_ELSE = ("A half-finished one leaves effects that cannot be undone.", "Wait until it ends.")


def assert_may_be_cancelled(
    context: Context, snapshot: Snapshot, files: InstantFiles, scope: PlanScope, *, force: bool
) -> None:
    """Refuse what must not be cancelled at all, and without force what others count on."""
    action = files.started_as
    if action is Action.CLEAN:
        _assert_not_started(snapshot, files)
    elif action not in TABLE_SERVICES | INGESTION:
        raise _not_cancellable(files, *_NEVER.get(action, _NEVER_ELSE))
    if force:
        return
    held = live_attempt(context, snapshot.ledger(files.instant.requested))
    if held is not None and (action not in TABLE_SERVICES or not held.is_ours):
        raise _held(files, held)
    if action in TABLE_SERVICES and not scope.is_cancellable:
        raise _not_cancellable(
            files,
            "It was scheduled as not cancellable, so others rely on it.",
            "Run it, or cancel it with force.",
        )


def _assert_not_started(snapshot: Snapshot, files: InstantFiles) -> None:
    """A clean may be cancelled only as long as it cannot have removed any file."""
    if (
        files.inflight is not None
        or snapshot.ledger(files.instant.requested).last_claim is not None
    ):
        raise _not_cancellable(
            files,
            "It has started, and files that it deleted do not come back.",
            "Clean again to finish it.",
        )


def _held(files: InstantFiles, held: LiveAttempt) -> Conflict:
    action, requested = files.started_as.value, files.instant.requested
    stays = "" if held.is_ours else " Java does not check for cancellation: stop it first."
    return Conflict(
        "instant_held",
        what=f"{action} {requested} was not cancelled.",
        why=f"{held} is working on it and is alive.",
        now=f"Wait until it ends, or cancel it with force.{stays}",
        instant=requested,
        owner=held.owner,
        host=held.host,
        since_ms=held.since_ms,
    )


def _not_cancellable(files: InstantFiles, why: str, now: str) -> InvalidRequest:
    return InvalidRequest(
        "not_cancellable",
        what=f"{files.started_as.value} {files.instant.requested} was not cancelled.",
        why=why,
        now=now,
        instant=files.instant.requested,
        action=files.started_as.value,
    )
