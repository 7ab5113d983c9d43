"""The guard: what is checked before an attempt at a plan may start.

Preemption: cancellable plans make room for those that are in a hurry, under one lock.
"""

from contextlib import ExitStack
from dataclasses import dataclass, replace

from lakewarden.engine.conflicts.conflicts import overlapping_plans
from lakewarden.engine.conflicts.touched_groups import PLANNED
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.kernel.errors import Conflict, CorruptTable, InvalidRequest
from lakewarden.engine.kernel.events import PLAN_GAVE_WAY, Event
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Instant, InstantFiles
from lakewarden.engine.timeline.instants.state import LedgerEnd, PlanFile
from lakewarden.engine.timeline.ledger.entries import Cancelled
from lakewarden.engine.timeline.ledger.ledger import Appended, Ledger, read_ledger
from lakewarden.engine.transaction.abort_attempt import abort_attempt_after
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.attempts.publish import to_inflight
from lakewarden.engine.transaction.cancel.cancel import Ending, cancel_in
from lakewarden.engine.transaction.rollback.execution import written_of
from lakewarden.engine.transaction.state.claims import append_claim
from lakewarden.engine.transaction.state.context import (
    TABLE_SERVICES,
    Context,
    Service,
    load_for_writing,
    pending_ledgers,
    reload_under_lock,
)
from lakewarden.engine.transaction.state.ledger_end import scope_of
from lakewarden.engine.transaction.state.live_attempt import LiveAttempt, live_attempt, plan_file
from lakewarden.engine.transaction.state.markers import make_direct
from lakewarden.engine.transaction.state.rollback_plans import pending_rollbacks
from lakewarden.engine.transaction.sweep.sweep import attempt_of, remove_written, schedule_sweep


def may_be_preempted(context: Context, snapshot: Snapshot, plan: str) -> bool:
    """Whether a pending plan gives way: it is cancellable, or cancelled already.

    One that a live Java executes does not, since Java does not look whether it was cancelled.
    """
    files = snapshot.pending(plan)
    if files is None or snapshot.ledger(plan).ends_in is LedgerEnd.CANCELLED:
        return True
    if not scope_of(snapshot, files).is_cancellable:
        return False
    held = live_attempt(context, snapshot.ledger(plan))
    return held is None or held.is_ours


def without_preemptible(context: Context, snapshot: Snapshot) -> Snapshot:
    """A moment as the maker of a plan sees it that is not cancellable: others make room for it."""
    active = snapshot.timeline.active
    plans = [plan.requested for plan in active.pending(PLANNED)]
    seen = replace(snapshot, ledgers={plan: read_ledger(context.storage, plan) for plan in plans})
    chosen = [plan for plan in plans if may_be_preempted(context, seen, plan)]
    return replace(snapshot, preemptible=frozenset(chosen))


def preempt(context: Context, snapshot: Snapshot, plan: str, by: str) -> bool:
    """Cancel a plan that stands in the way of another instant; False where it must be respected.

    The caller has the lock and has reloaded, and aborts the plan once the lock is free.
    """
    try:
        answer = cancel_in(context, snapshot, plan, f"pre-empted by {by}")
    except (InvalidRequest, Conflict):
        return False
    if answer.outcome is Ending.ALREADY_COMMITTED:
        return False
    context.ports.events(Event(PLAN_GAVE_WAY, {"plan": plan, "to": by}))
    return True


def preempt_plans(
    context: Context, held: HeldLock, snapshot: Snapshot, groups: frozenset[FileGroupId], by: str
) -> tuple[str, ...]:
    """Cancel the cancellable plans that hold some of the file groups; their instants.

    For the maker of a plan that is not cancellable, who publishes it under the same lock.
    """
    chosen = [
        plan
        for plan in overlapping_plans(groups, snapshot.timeline.active)
        if may_be_preempted(context, snapshot, plan)
    ]
    if chosen:
        held.assert_held()
    return tuple(plan for plan in chosen if preempt(context, snapshot, plan, by))


@dataclass(frozen=True, slots=True)
class Started:
    """An attempt that may work, or the completed instant that needs none any more."""

    attempt: Attempt | None = None
    completed: Instant | None = None


def start(context: Context, instant: str, service: Service | None = None) -> Started:
    """Begin an attempt at a plan, or raise who or what stands in the way.

    With a service only a plan of that one is started: another would misread it.

    Steps of `start`: lock, reload, completed, cancelled, held, executable, claim, heartbeat,
    unlock, earlier-files, inflight. A crash after `start.claim` leaves a claim without work, and
    the next start claims behind it.
    """
    # An attempt that is interrupted before anybody has it in hand must not go on beating.
    with ExitStack() as on_the_way:
        with context.lock.hold(while_wanted=True) as held:
            snapshot = reload_under_lock(context)
            completed = snapshot.completed_write(instant)
            _assert_of(snapshot, instant, service)
            if completed is not None:
                return Started(completed=completed)
            files = _executable(context, snapshot, instant)
            held.assert_held()
            ledger = _claim(context, snapshot.ledger(instant), files)
            claim = ledger.last_claim
            assert claim is not None
            attempt = on_the_way.enter_context(Attempt(context, snapshot.layout, claim).begin())
        try:
            _remove_earlier(context, attempt, snapshot, files, ledger)
            to_inflight(context, attempt)
        except Conflict as loss:
            abort_attempt_after(context, attempt, loss)
            raise
        on_the_way.pop_all()
    return Started(attempt)


def dry_run_start(context: Context, instant: str, service: Service) -> None:
    """Raise what `start` would raise, as things stand without the lock; nothing is changed."""
    seen = load_for_writing(context)
    snapshot = replace(seen, ledgers=pending_ledgers(context, seen))
    _assert_of(snapshot, instant, service)
    if snapshot.completed_write(instant) is None:
        _executable(context, snapshot, instant)


def _assert_of(snapshot: Snapshot, instant: str, service: Service | None) -> None:
    """Refuse an instant that is of another service, or none's."""
    write = snapshot.completed_write(instant)
    files = snapshot.pending(instant)
    if write is not None:
        files = snapshot.timeline.active.files_of(write)
    if service is None or files is None or files.started_as is service.action:
        return
    found = Service.of(files.started_as)
    raise InvalidRequest(
        "plan_of_another_service",
        what=f"{instant} is not a {service.words}.",
        why=f"It is a {files.started_as.value if found is None else found.words}.",
        now="Look at the table's plans for those you can run, and their services.",
        instant=instant,
        action=files.started_as.value,
    )


def _assert_whole(snapshot: Snapshot, files: InstantFiles) -> None:
    try:
        is_whole = plan_file(snapshot, files) is PlanFile.WHOLE
    except CorruptTable as error:
        if error.code != "missing_file":
            raise
        # A process without the lock has removed it this very moment.
        raise _unknown(files.instant.requested) from error
    if not is_whole:
        why = "Its plan is torn or missing, so it was never published."
        raise _refused(
            files, "plan_torn", why, "Schedule a new plan; the next write removes this one."
        )


def _executable(context: Context, snapshot: Snapshot, instant: str) -> InstantFiles:
    """Steps `start.cancelled`, `start.held` and `start.executable`."""
    files = snapshot.pending(instant)
    if files is None or files.started_as not in TABLE_SERVICES:
        raise _unknown(instant)
    ledger = snapshot.ledger(instant)
    if ledger.ends_in is LedgerEnd.CANCELLED:
        raise _cancelled(files)
    _assert_whole(snapshot, files)
    held = live_attempt(context, ledger)
    if held is not None:
        raise _held(files, f"{held} is running it.", held)
    if instant in pending_rollbacks(snapshot.timeline.active).pending:
        why = "A rollback of it is running."
        raise _refused(files, "plan_not_executable", why, "Schedule a new plan.")
    if files.inflight is not None and scope_of(snapshot, files).is_cancellable:
        why = "Its attempt failed, and a cancellable plan has only one."
        raise _refused(files, "plan_not_executable", why, "Cancel it, then schedule a new plan.")
    return files


def _claim(context: Context, ledger: Ledger, files: InstantFiles) -> Ledger:
    """Step `start.claim`."""
    answer = append_claim(context, ledger, files.started_as, context.ports.ids.fresh())
    if isinstance(answer, Appended):
        return answer.ledger
    if isinstance(answer.entry, Cancelled):
        raise _cancelled(files)
    raise _held(files, "Another process has just claimed it.")


def _remove_earlier(
    context: Context, attempt: Attempt, snapshot: Snapshot, files: InstantFiles, ledger: Ledger
) -> None:
    """Step `start.earlier-files`: what superseded attempts left goes; the plan stays."""
    if files.inflight is not None:
        make_direct(context.storage, attempt.instant)
    if attempt.number == 1:
        return
    written = written_of(context, snapshot, files, ledger)
    earlier = [file for file in written if attempt_of(file.name) != attempt.number]
    # A later claim writes later, so that nothing of a newer attempt is among these.
    attempt.check_claim()
    # One that has only paused may still write, and be killed before it finds out.
    schedule_sweep(context, attempt.instant, scope_of(snapshot, files).partitions)
    remove_written(context, ledger, attempt.number - 1, earlier)


def _held(files: InstantFiles, why: str, held: LiveAttempt | None = None) -> Conflict:
    refusal = _refused(files, "plan_held", why, "Wait until it ends, or cancel it.")
    if held is not None:
        refusal.parameters |= {
            "owner": held.owner,
            "host": held.host,
            "since_ms": held.since_ms,
            "expires_ms": held.expires_ms,
        }
    return refusal


def _cancelled(files: InstantFiles) -> Conflict:
    return _refused(files, "plan_cancelled", "It was cancelled.", "Schedule a new plan.")


def _refused(files: InstantFiles, code: str, why: str, now: str) -> Conflict:
    return Conflict(
        code,
        what=f"{files.started_as.value} {files.instant.requested} was not started.",
        why=why,
        now=now,
        instant=files.instant.requested,
    )


def _unknown(instant: str) -> InvalidRequest:
    return InvalidRequest(
        "unknown_plan",
        what=f"The timeline has no pending plan {instant}.",
        why="It may be rolled back or archived, or was never published.",
        now="Look at the table's plans for those you can run.",
        instant=instant,
    )
