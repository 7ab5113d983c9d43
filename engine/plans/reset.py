"""Resetting: a plan that was begun and left goes back to where nobody has begun with it.

Whoever resets a plan claims it first, so that no earlier attempt can commit, and removes what those
have made. A cancellable plan has one attempt only: it is cancelled instead.
"""

from dataclasses import dataclass
from enum import StrEnum

from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.plans.cancel import cancel
from lakewarden.engine.plans.cancelling import scope_of
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.live_attempt import live_attempt
from lakewarden.engine.plans.moment import look, reload
from lakewarden.engine.plans.service import TABLE_SERVICES
from lakewarden.engine.plans.start import start
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.instant import Action
from lakewarden.engine.timeline.ledger import read_ledger

_REASON = "It had started and was left; it was rolled back on request."


class ResetOutcome(StrEnum):
    """What became of a plan."""

    REQUESTED_AGAIN = "requested_again"
    CANCELLED = "cancelled"
    # There was nothing to take back.
    NOT_BEGUN = "not_begun"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
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
    moment = look(context)
    files = _refused_unless_left(context, moment, instant)
    is_cancelled = removes_plan or scope_of(moment, files).is_cancellable
    if files.inflight is None and not removes_plan:
        return Reset(instant=instant, action=files.begun_as, outcome=ResetOutcome.NOT_BEGUN)
    if is_cancelled:
        done = cancel(context, instant, _REASON, force=True, dry_run=dry_run)
        return Reset(
            instant=instant,
            action=files.begun_as,
            outcome=ResetOutcome.CANCELLED,
            removed_files=done.removed_files,
        )
    outcome = ResetOutcome.REQUESTED_AGAIN if dry_run else _requested_again(context, instant)
    return Reset(instant=instant, action=files.begun_as, outcome=outcome)


def _requested_again(context: Context, instant: str) -> ResetOutcome:
    attempt = start(context, instant).attempt
    if attempt is None:
        return ResetOutcome.COMPLETED
    with attempt:
        with context.lock.hold() as held:
            files = reload(context).pending(instant)
            attempt.look()
            held.assert_held()
            if files is not None and files.inflight is not None:
                context.storage.delete(files.inflight.entry.path)
        attempt.stop(leaves_plan=True)
    return ResetOutcome.REQUESTED_AGAIN


def _refused_unless_left(context: Context, moment: Snapshot, instant: str) -> InstantFiles:
    files = moment.pending(instant)
    if files is None or files.begun_as not in TABLE_SERVICES:
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
            what=f"The {files.begun_as.value} {instant} was not rolled back.",
            why=f"{live} is running it.",
            now="Wait until it ends, or cancel it.",
            instant=instant,
        )
    return files
