"""Cancelling: after it an instant can never commit, whatever an attempt at it still does.

Cancellations: the answer to a request to cancel an instant, as values.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from lakewarden.engine.formats.instant_metadata import rollback as rollback_payload
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest, LakewardenError
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action, Instant, InstantFiles
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.entries import Cancelled
from lakewarden.engine.timeline.ledger.ledger import Ledger, read_ledger
from lakewarden.engine.timeline.roll_forward import roll_forward
from lakewarden.engine.transaction.rollback.cancelled_instant import abort
from lakewarden.engine.transaction.rollback.execution import RolledBack, written_of
from lakewarden.engine.transaction.state.context import (
    TABLE_SERVICES,
    Context,
    Service,
    load_for_writing,
    pending_ledgers,
    reload_under_lock,
)
from lakewarden.engine.transaction.state.ledger_end import append_cancelled, scope_of
from lakewarden.engine.transaction.state.live_attempt import LiveAttempt, live_attempt
from lakewarden.engine.transaction.state.plan_scope import INGESTION, PlanScope
from lakewarden.engine.transaction.state.rollback_plans import (
    completed_rollback_of,
    is_taken_back,
    pending_rollbacks,
    rolled_back_elsewhere,
)
from lakewarden.engine.transaction.sweep.sweep import look_at_paths


class Ending(StrEnum):
    """What a request to cancel has come to."""

    CANCELLED = "cancelled"
    ALREADY_CANCELLED = "already_cancelled"
    ALREADY_COMMITTED = "already_committed"
    # Only where nothing is done in any case: else a refusal is an error.
    REFUSED = "refused"


class Cleanup(StrEnum):
    """What has become of the files of a cancelled instant, and of its place on the timeline."""

    DONE = "done"
    # A live attempt has not seen yet that it was cancelled; it removes what it has made.
    LEFT_TO_ATTEMPT = "left_to_attempt"
    # The next clean, the next write or the next cancel does it.
    DUE = "due"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Cancellation(Shown):
    """The answer to a request to cancel; what it says of the outcome holds for good."""

    instant: str
    action: Action
    outcome: Ending
    message: str
    # None where there is nothing to clean up: the instant has completed, or stays.
    cleanup: Cleanup | None = None
    # Who had it in hand at the end of the call.
    held_by: LiveAttempt | None = None
    # When the instant has completed, if it has.
    completed: str | None = None
    rolled_back: RolledBack | None = None
    removed_files: int = 0
    reclaimed_bytes: int = 0
    # The partitions that the next plan of the service has to look at.
    handed_back: tuple[str, ...] = ()
    is_dry_run: bool = False

    def __str__(self) -> str:
        return self.message

    @property
    def service(self) -> Service | None:
        """The service whose plan it was, if it was one."""
        return Service.of(self.action)


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
}
# A build of an index may be cancelled at any time: nothing counts on it before it is ready.
_CANCELLABLE = TABLE_SERVICES | INGESTION | {Action.INDEXING}
_STOPPING = TABLE_SERVICES | {Action.INDEXING}
_NEVER_ELSE = ("A half-finished one leaves effects that cannot be undone.", "Wait until it ends.")


def assert_may_be_cancelled(
    context: Context, snapshot: Snapshot, files: InstantFiles, scope: PlanScope, *, force: bool
) -> None:
    """Refuse what must not be cancelled at all, and without force what others count on."""
    action = files.started_as
    if action is Action.CLEAN:
        _assert_not_started(snapshot, files)
    elif action not in _CANCELLABLE:
        raise _not_cancellable(files, *_NEVER.get(action, _NEVER_ELSE))
    if force:
        return
    held = live_attempt(context, snapshot.ledger(files.instant.requested))
    if held is not None and (action not in _STOPPING or not held.is_ours):
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


# How often to look whether a live attempt has stopped.
LOOK_EVERY_SECONDS = 0.2


def cancel(
    context: Context,
    instant: str,
    reason: str,
    *,
    by: str | None = None,
    force: bool = False,
    wait_seconds: float = 0,
    dry_run: bool = False,
) -> Cancellation:
    """Cancel a pending instant; possible while an attempt at it is alive.

    It is cancelled for good before anything is cleaned up. What a live attempt has made is left to
    it; with `wait_seconds` it is waited for, and what it leaves is removed. A cleanup that fails is
    no error: the answer says that it is due. Raises `not_cancellable` and `instant_held`; a dry run
    reports these, and changes nothing.
    """
    if dry_run:
        return _dry_run(context, instant, force=force)
    answer = acknowledge(context, instant, reason, by=by, force=force)
    if answer.outcome is Ending.ALREADY_COMMITTED:
        return answer
    return _clean_up(context, answer, wait_seconds)


def acknowledge(
    context: Context, instant: str, reason: str, *, by: str | None = None, force: bool = False
) -> Cancellation:
    """Cancel an instant, and leave the cleanup to the caller.

    Steps of `cancel`: lock, reload, completed, ended, refuse, append, unlock.
    """
    with context.lock.hold():
        return cancel_in(context, reload_under_lock(context), instant, reason, by=by, force=force)


def cancel_in(
    context: Context,
    snapshot: Snapshot,
    instant: str,
    reason: str,
    *,
    by: str | None = None,
    force: bool = False,
) -> Cancellation:
    """Steps `cancel.completed` to `cancel.append`, by a caller that has the lock and reloaded."""
    files = snapshot.pending(instant)
    if files is None:
        return _of_ended(context, snapshot, instant)
    ledger = snapshot.ledger(instant)
    if ledger.ends_in is LedgerEnd.CANCELLED:
        return _cancelled(ledger, files.started_as, Ending.ALREADY_CANCELLED)
    scope = scope_of(snapshot, files)
    assert_may_be_cancelled(context, snapshot, files, scope, force=force)
    ended = append_cancelled(context, ledger, files.started_as, scope, reason=reason, by=by)
    if ended.ends_in is LedgerEnd.COMMITTED:
        rollbacks = pending_rollbacks(snapshot.timeline.active)
        if is_taken_back(snapshot.timeline.active, rollbacks, ended):
            raise rolled_back_elsewhere(files.started_as, instant)
        rolled = roll_forward(context.storage, snapshot.timeline, ended)
        return _committed(rolled.instant, files.started_as)
    return _cancelled(ended, files.started_as, Ending.CANCELLED)


def _of_ended(context: Context, snapshot: Snapshot, instant: str) -> Cancellation:
    completed = snapshot.completed_write(instant)
    if completed is not None:
        files = snapshot.timeline.active.files_of(completed)
        return _committed(completed, files.started_as if files else completed.action)
    ledger = read_ledger(context.storage, instant)
    if ledger.ends_in is LedgerEnd.CANCELLED:
        assert ledger.last_whole is not None
        return _cancelled(ledger, ledger.last_whole.action, Ending.ALREADY_CANCELLED)
    action = _rolled_back_action(snapshot, instant)
    if action is not None:
        return _cancelled(ledger, action, Ending.ALREADY_CANCELLED)
    raise InvalidRequest(
        "unknown_instant",
        what=f"The timeline has no pending instant {instant}.",
        why="It may be archived, or was never published.",
        now="Look at the table's plans for those you can cancel.",
        instant=instant,
    )


def _rolled_back_action(snapshot: Snapshot, instant: str) -> Action | None:
    """The action of an instant that was rolled back without a ledger."""
    active = snapshot.timeline.active
    requested = completed_rollback_of(active, instant)
    for done in active.completed((Action.ROLLBACK,)):
        if done.requested == requested:
            metadata = rollback_payload.decode(active.read(done), active.path(done))
            for reference in metadata.instants_rollback:
                if reference.commit_time == instant:
                    return Action(reference.action)
            return Action.COMMIT
    return None


def _clean_up(context: Context, answer: Cancellation, wait_seconds: float) -> Cancellation:
    """Abort, once the attempt has stopped or the time is up; the truth about what is left."""
    try:
        ledger = read_ledger(context.storage, answer.instant)
        if ledger.ends_in is not LedgerEnd.CANCELLED:
            return replace(answer, cleanup=Cleanup.DONE)
        _wait_for(context, ledger, wait_seconds)
        rolled_back = abort(context, answer.instant)
        held = live_attempt(context, ledger)
        is_gone = load_for_writing(context).pending(answer.instant) is None
    except LakewardenError as error:
        message = (
            f"{answer.message} Its cleanup failed; the next operation on the table repeats "
            f"it: {error}"
        )
        return replace(answer, cleanup=Cleanup.DUE, message=message)
    if not is_gone:
        return _left(answer, held)
    return replace(
        answer,
        cleanup=Cleanup.DONE,
        rolled_back=rolled_back,
        removed_files=0 if rolled_back is None else rolled_back.files_deleted,
        reclaimed_bytes=0 if rolled_back is None else rolled_back.bytes_deleted,
        message=f"{answer.message} It is off the timeline.",
    )


def _left(answer: Cancellation, held: LiveAttempt | None) -> Cancellation:
    if held is None:
        return replace(answer, cleanup=Cleanup.DUE)
    stops = (
        "stops as soon as it notices, then deletes its files"
        if held.is_ours
        else "does not check for cancellation and may still complete it: stop it"
    )
    message = f"{answer.message} {held} is still working on it and {stops}."
    return replace(answer, cleanup=Cleanup.LEFT_TO_ATTEMPT, held_by=held, message=message)


def _wait_for(context: Context, ledger: Ledger, wait_seconds: float) -> None:
    """Wait until no attempt at the instant is alive, or the time is up."""
    clock = context.ports.clock
    until = clock.elapsed_seconds() + wait_seconds
    while (left := until - clock.elapsed_seconds()) > 0 and live_attempt(context, ledger):
        context.ports.check_wanted()
        clock.sleep(min(left, LOOK_EVERY_SECONDS))


def _dry_run(context: Context, instant: str, *, force: bool) -> Cancellation:
    """What cancelling would come to, as things stand without the lock."""
    seen = load_for_writing(context)
    snapshot = replace(seen, ledgers=pending_ledgers(context, seen))
    files = snapshot.pending(instant)
    if files is None:
        return replace(_of_ended(context, snapshot, instant), is_dry_run=True)
    ledger = snapshot.ledger(instant)
    if ledger.ends_in is LedgerEnd.COMMITTED:
        done = _committed(files.instant, files.started_as)
        return replace(done, is_dry_run=True)
    held, scope = live_attempt(context, ledger), scope_of(snapshot, files)
    try:
        if ledger.ends_in is not LedgerEnd.CANCELLED:
            assert_may_be_cancelled(context, snapshot, files, scope, force=force)
    except (InvalidRequest, Conflict) as refusal:
        return Cancellation(
            instant=instant,
            action=files.started_as,
            outcome=Ending.REFUSED,
            message=str(refusal),
            held_by=held,
            is_dry_run=True,
        )
    return _would_be_cancelled(context, snapshot, files, scope, held)


def _would_be_cancelled(
    context: Context,
    snapshot: Snapshot,
    files: InstantFiles,
    scope: PlanScope,
    held: LiveAttempt | None,
) -> Cancellation:
    instant = files.instant.requested
    ledger = snapshot.ledger(instant)
    is_cancelled = ledger.ends_in is LedgerEnd.CANCELLED
    written = written_of(context, snapshot, files, ledger)
    entries = look_at_paths(context, [file.path for file in written])
    there = [entry for entry in entries if entry is not None]
    return Cancellation(
        instant=instant,
        action=files.started_as,
        outcome=Ending.ALREADY_CANCELLED if is_cancelled else Ending.CANCELLED,
        message=f"{files.started_as.value} {instant} would be cancelled; nothing was changed.",
        cleanup=Cleanup.DONE if held is None else Cleanup.LEFT_TO_ATTEMPT,
        held_by=held,
        removed_files=len(there),
        reclaimed_bytes=sum(entry.size_bytes for entry in there),
        handed_back=_merged(scope.partitions, scope.missing_partitions),
        is_dry_run=True,
    )


def _committed(instant: Instant, action: Action) -> Cancellation:
    when = "" if instant.completed is None else f" at {instant.completed}"
    return Cancellation(
        instant=instant.requested,
        action=action,
        outcome=Ending.ALREADY_COMMITTED,
        message=(
            f"{action.value} {instant.requested} has committed{when}, and a committed "
            "instant stays."
        ),
        completed=instant.completed,
    )


def _cancelled(ledger: Ledger, action: Action, outcome: Ending) -> Cancellation:
    entry = ledger.last_whole
    handed_back: tuple[str, ...] = ()
    if isinstance(entry, Cancelled):
        handed_back = _merged(entry.partitions, entry.missing_partitions)
    word = "was already cancelled" if outcome is Ending.ALREADY_CANCELLED else "is cancelled"
    return Cancellation(
        instant=ledger.instant,
        action=action,
        outcome=outcome,
        message=f"{action.value} {ledger.instant} {word}; it will never commit.",
        cleanup=Cleanup.DUE,
        handed_back=handed_back,
    )


def _merged(*partitions: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({one for group in partitions for one in group}))
