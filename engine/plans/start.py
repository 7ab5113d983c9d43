"""The guard: what is checked before an attempt at a plan may start."""

from dataclasses import dataclass

from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.plans.attempt import Attempt
from lakewarden.engine.plans.cancelling import scope_of
from lakewarden.engine.plans.claims import append_claim
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.evidence import newest_sign
from lakewarden.engine.plans.moment import Moment, reload
from lakewarden.engine.plans.publish import to_inflight
from lakewarden.engine.plans.rollback_plans import pending_rollbacks
from lakewarden.engine.plans.service import TABLE_SERVICES
from lakewarden.engine.plans.written_files import find_written, is_of_attempt, remove_written
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.instant import Instant
from lakewarden.engine.timeline.ledger import Appended, Ledger
from lakewarden.engine.timeline.state import BeatSign, LedgerEnd


@dataclass(frozen=True, slots=True)
class Started:
    """An attempt that may work, or the completed instant that needs none any more."""

    attempt: Attempt | None = None
    completed: Instant | None = None


def start(context: Context, instant: str) -> Started:
    """Begin an attempt at a plan, or raise who or what stands in the way.

    Steps: 1 lock, 2 reload, 3 completed, 4 cancelled, 5 held, 6 not executable, 7 claim, 8 first
    beat, 9 unlock, 10 files of earlier attempts, 11 inflight. A crash after 7 leaves a claim
    without work, and the next start claims behind it.
    """
    with context.lock.hold() as held:
        moment = reload(context)
        completed = moment.completed_write(instant)
        if completed is not None:
            return Started(completed=completed)
        files = moment.pending(instant)
        if files is None or files.begun_as not in TABLE_SERVICES:
            raise _unknown(instant)
        _assert_executable(context, moment, files)
        held.assert_held()
        ledger = moment.ledger(instant)
        answer = append_claim(context, ledger, files.begun_as, context.ports.ids.fresh())
        if not isinstance(answer, Appended):
            raise _held(files, "Another one has claimed it at this very moment.")
        claim = answer.ledger.last_claim
        assert claim is not None
        attempt = Attempt(context, moment.layout, claim).begin()
    _remove_earlier(context, attempt, answer.ledger)
    to_inflight(context, attempt)
    return Started(attempt)


def _assert_executable(context: Context, moment: Moment, files: InstantFiles) -> None:
    """Steps 4 to 6."""
    requested = files.instant.requested
    ledger = moment.ledger(requested)
    if ledger.ends_in is LedgerEnd.CANCELLED:
        raise _refused(files, "plan_cancelled", "It was cancelled.", "Schedule another one.")
    if newest_sign(context, ledger) is BeatSign.LIVE:
        claim = ledger.last_claim
        who = "Java Hudi" if claim is None else f"attempt {claim.attempt} on {claim.host}"
        raise _held(files, f"It is being carried out by {who}.")
    if requested in pending_rollbacks(moment.timeline.active).pending:
        why = "A rollback of it is under way."
        raise _refused(files, "plan_not_executable", why, "Schedule another one.")
    if files.inflight is not None and scope_of(moment, files).is_cancellable:
        why = "An attempt at it has failed, and a cancellable plan has one attempt only."
        raise _refused(files, "plan_not_executable", why, "Cancel it, and schedule another one.")


def _remove_earlier(context: Context, attempt: Attempt, ledger: Ledger) -> None:
    """Step 10: what superseded attempts have left; the plan stays."""
    if attempt.number == 1:
        return
    written = find_written(context.storage, attempt.instant)
    others = [file for file in written if not is_of_attempt(file, attempt.number)]
    remove_written(context, ledger, attempt.number - 1, others)


def _held(files: InstantFiles, why: str) -> Conflict:
    return _refused(files, "plan_held", why, "Wait for it, or cancel it.")


def _refused(files: InstantFiles, code: str, why: str, now: str) -> Conflict:
    return Conflict(
        code,
        what=f"{files.begun_as.value} {files.instant.requested} was not started.",
        why=why,
        now=now,
        instant=files.instant.requested,
    )


def _unknown(instant: str) -> InvalidRequest:
    return InvalidRequest(
        "unknown_plan",
        what=f"The timeline has no pending plan {instant}.",
        why="It may have been rolled back or archived, or never been published.",
        now="Look at the table's plans for what can be carried out.",
        instant=instant,
    )
