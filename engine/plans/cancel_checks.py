"""What may be cancelled: everything else is refused by name, with what to do instead."""

from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.live_attempt import LiveAttempt, live_attempt
from lakewarden.engine.plans.plan_scope import INGESTION, PlanScope
from lakewarden.engine.plans.service import TABLE_SERVICES
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.instant import Action

# Actions that are never cancelled, why, and what to do about one that hangs.
_NEVER = {
    Action.ROLLBACK: (
        "It removes an instant that has failed, whose files would stay without it.",
        "The next clean or write finishes it, or rollback_failed_writes does.",
    ),
    Action.RESTORE: (
        "The table is on its way back to a savepoint, and half-way it is no table.",
        "Restore to the same savepoint again: that finishes it.",
    ),
    Action.INDEXING: (
        "The metadata table has begun to keep the index, and writers maintain it already.",
        "Carry it out, or drop the index.",
    ),
}
_NEVER_ELSE = ("Half of its effects cannot be taken back.", "Let it finish.")


def assert_may_be_cancelled(
    context: Context, moment: Snapshot, files: InstantFiles, scope: PlanScope, *, force: bool
) -> None:
    """Refuse what must not be cancelled at all, and without force what others count on."""
    action = files.begun_as
    if action is Action.CLEAN:
        _assert_not_begun(moment, files)
    elif action not in TABLE_SERVICES | INGESTION:
        raise _not_cancellable(files, *_NEVER.get(action, _NEVER_ELSE))
    if force:
        return
    held = live_attempt(context, moment.ledger(files.instant.requested))
    if held is not None and (action not in TABLE_SERVICES or not held.is_ours):
        raise _held(files, held)
    if action in TABLE_SERVICES and not scope.is_cancellable:
        raise _not_cancellable(
            files,
            "It was scheduled as not cancellable, so others count on its being carried out.",
            "Carry it out, or cancel it with force.",
        )


def _assert_not_begun(moment: Snapshot, files: InstantFiles) -> None:
    """A clean may be cancelled only as long as it cannot have removed any file."""
    if files.inflight is not None or moment.ledger(files.instant.requested).last_claim is not None:
        raise _not_cancellable(
            files,
            "It was begun, and files that it has removed do not come back.",
            "Clean again: that finishes it.",
        )


def _held(files: InstantFiles, held: LiveAttempt) -> Conflict:
    action, requested = files.begun_as.value, files.instant.requested
    stays = "" if held.is_ours else " Java does not look whether it was cancelled: stop it first."
    return Conflict(
        "instant_held",
        what=f"{action} {requested} was not cancelled.",
        why=f"It is in the hands of {held}, which is alive.",
        now=f"Wait for it, or cancel it with force.{stays}",
        instant=requested,
        owner=held.owner,
        host=held.host,
        since_ms=held.since_ms,
    )


def _not_cancellable(files: InstantFiles, why: str, now: str) -> InvalidRequest:
    return InvalidRequest(
        "not_cancellable",
        what=f"{files.begun_as.value} {files.instant.requested} was not cancelled.",
        why=why,
        now=now,
        instant=files.instant.requested,
        action=files.begun_as.value,
    )
