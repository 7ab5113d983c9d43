"""Taking over: an attempt at a pending clean or restore that its writer has published and left.

Such an instant is idempotent, so any plan of it can be resumed: ours, or Java's.
"""

from contextlib import ExitStack
from dataclasses import dataclass

from lakewarden.engine.formats.instant_metadata.binding import TORN_PLAN
from lakewarden.engine.kernel.errors import Conflict, CorruptTable
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action, InstantFiles, StateFile
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import Appended, Ledger
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.attempts.publish import to_inflight
from lakewarden.engine.transaction.state.claims import append_claim
from lakewarden.engine.transaction.state.context import Context, reload_under_lock
from lakewarden.engine.transaction.state.live_attempt import (
    JAVA,
    LiveAttempt,
    is_recent,
    live_attempt,
)
from lakewarden.engine.transaction.state.plan_scope import plan_scope


@dataclass(frozen=True, slots=True)
class TakenOver:
    """An attempt at the instant, or the attempt that is alive; neither when it has ended."""

    attempt: Attempt | None = None
    live: LiveAttempt | None = None


def take_over(context: Context, action: Action, instant: str) -> TakenOver:
    """Start an attempt at a pending instant that is no write, unless another attempt is alive.

    Steps of `take-over`: lock, reload, held, claim, heartbeat, unlock, inflight. A crash after
    `take-over.claim` leaves a claim without work, and the next one claims behind it.
    """
    # An attempt that fails before it is returned stops its heartbeat, which would keep others away.
    with ExitStack() as on_the_way:
        with context.lock.hold() as held:
            snapshot = reload_under_lock(context)
            files = pending_of(snapshot, action, instant)
            ledger = snapshot.ledger(instant)
            if files is None or ledger.ends_in is LedgerEnd.CANCELLED:
                return TakenOver()
            live = working_attempt(context, ledger, files)
            if live is not None:
                return TakenOver(live=live)
            held.assert_held()
            claimed = append_claim(context, ledger, action, context.ports.ids.fresh())
            claim = claimed.ledger.last_claim if isinstance(claimed, Appended) else None
            if claim is None:
                raise _lost_the_claim(action, instant)
            attempt = on_the_way.enter_context(Attempt(context, snapshot.layout, claim).begin())
        to_inflight(context, attempt)
        on_the_way.pop_all()
    return TakenOver(attempt)


def remove_torn(context: Context, action: Action, instant: str) -> bool:
    """Whether a plan is gone or was torn; a torn one was never published and is removed here."""
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        files = pending_of(snapshot, action, instant)
        if files is None:
            return True
        if files.requested is not None and not _is_torn(context, action, files.requested):
            return False
        # Without a plan it is what an executor that came too late has left on the timeline.
        held.assert_held()
        for file in reversed(list(files)):
            context.storage.delete(file.entry.path)
    return True


def _is_torn(context: Context, action: Action, requested: StateFile) -> bool:
    path = requested.entry.path
    try:
        plan_scope(action, context.storage.read(path), path)
    except CorruptTable as error:
        if error.code != TORN_PLAN:
            raise
        return True
    return False


def pending_of(snapshot: Snapshot, action: Action, instant: str) -> InstantFiles | None:
    """The files of a pending instant of an action; a write may have the same time."""
    for one in snapshot.timeline.active.pending((action,)):
        if one.requested == instant:
            return snapshot.timeline.active.files_of(one)
    return None


def plan_in_hand(context: Context, snapshot: Snapshot, attempt: Attempt) -> tuple[bytes, str]:
    """The plan that an attempt is to carry out, and its path; raises if others have ended it."""
    files = pending_of(snapshot, attempt.action, attempt.instant)
    if files is not None and files.requested is not None:
        path = files.requested.entry.path
        content = context.storage.read_if_present(path)
        if content is not None:
            return content, path
    attempt.check_claim()
    raise _ended_elsewhere(attempt)


def working_attempt(context: Context, ledger: Ledger, files: InstantFiles) -> LiveAttempt | None:
    """Who works on it. Java sends no heartbeat here, so that its last step speaks for it."""
    live = live_attempt(context, ledger)
    is_javas = ledger.last_claim is None and files.inflight is not None
    if live is None and is_javas and files.inflight is not None:
        modified_ms = files.inflight.entry.modified_ms
        if is_recent(context, modified_ms):
            return LiveAttempt(owner=JAVA, since_ms=modified_ms)
    return live


def _ended_elsewhere(attempt: Attempt) -> Conflict:
    return Conflict(
        "superseded",
        what=f"Attempt {attempt.number} at {attempt.action.value} {attempt.instant} stopped.",
        why="Another process has ended this instant.",
        now="Look at the timeline for the instant's state.",
        instant=attempt.instant,
        attempt=attempt.number,
    )


def _lost_the_claim(action: Action, instant: str) -> Conflict:
    return Conflict(
        "instant_held",
        what=f"{action.value} {instant} was not resumed.",
        why="Another process has just claimed it.",
        now="Try again when that one has ended.",
        instant=instant,
    )
