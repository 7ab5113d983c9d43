"""Failed writes: what was started and not ended is published if it had committed, else undone.

A live attempt is never touched, whatever the policy. Plans of services wait for their execution: a
write rolls back only those that were cancelled, a clean aborts cancellable ones whose time is over,
and an immutable one is never aborted.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from lakewarden.engine.kernel.errors import Conflict, CorruptTable
from lakewarden.engine.kernel.events import Event
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.snapshot import Loaded, Snapshot
from lakewarden.engine.storage.side_by_side import both
from lakewarden.engine.timeline.instants.instant import Action, InstantFiles
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.timeline.roll_forward import RolledForward
from lakewarden.engine.transaction.recovery.due_instants import DueInstant, FailedInstantFinder
from lakewarden.engine.transaction.rollback.ended_builds import end_build
from lakewarden.engine.transaction.rollback.execution import (
    LATER_WRITES,
    STARTED_ELSEWHERE,
    RollbackInProgress,
    begin_rollback,
    execute_rollback,
    unpublish,
)
from lakewarden.engine.transaction.state.context import (
    Context,
    is_committed,
    load_for_writing,
    pending_ledgers,
    reload_under_lock,
    torn_completion,
    unpublished_in,
)
from lakewarden.engine.transaction.state.ledger_end import (
    append_cancelled,
    append_withdrawn,
    scope_of,
)
from lakewarden.engine.transaction.state.plan_scope import PlanScope
from lakewarden.engine.transaction.state.rollback_plans import (
    PendingRollback,
    Rollbacks,
    pending_rollbacks,
)


class Repair(StrEnum):
    """What was done about an instant."""

    ROLLED_FORWARD = "rolled_forward"
    ROLLED_BACK = "rolled_back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """An instant that hung in the air and does so no more."""

    instant: str
    action: Action
    repair: Repair
    rollback: str | None = None
    files_deleted: int = 0
    # Published behind others that completed later: an incremental reader may have moved on.
    is_late: bool = False


def recover_failed_instants(context: Context, *, with_plans: bool = False) -> tuple[Recovered, ...]:
    """Bring every instant without a live attempt to its end; without any it reads the table once.

    With plans, as a clean asks for it, cancellable ones are aborted that were started and left, or
    that have waited too long to be started. Steps of `recover`: find, lock, reload, due, cancel,
    plan, hide, unlock, execute. Each instant takes the lock anew for all from the lock to the
    unlock. A crash anywhere leaves instants that the next call settles.
    """
    settled: list[Recovered] = []
    started: list[RollbackInProgress] = []
    for instant in _candidates(context, load_for_writing(context), with_plans=with_plans):
        with context.lock.hold() as held, _as_holder(held):
            snapshot = reload_under_lock(context)
            settled += [_roll_forward(snapshot, rolled) for rolled in snapshot.rolled_forward]
            rollbacks = _whole_rollbacks(context, snapshot)
            finder = FailedInstantFinder(context, snapshot, rollbacks, with_plans)
            for due in tuple(finder.all_due(instant)):
                in_progress = _begin_in_time(context, held, snapshot, rollbacks, due)
                if in_progress is not None:
                    started.append(in_progress)
    for in_progress in started:
        done = execute_rollback(context, in_progress)
        if done is not None:
            settled.append(
                Recovered(
                    instant=done.instant,
                    action=done.action,
                    repair=Repair.ROLLED_BACK,
                    rollback=done.rollback,
                    files_deleted=done.files_deleted,
                )
            )
    for one in settled:
        repair = one.repair.value.replace("_", " ")
        figures = {"action": one.action.value, "instant": one.instant, "repair": repair}
        context.ports.events(Event("recovered", figures))
    return tuple(settled)


@contextmanager
def _as_holder(held: HeldLock) -> Iterator[None]:
    """Report a missing file as a lost lock if it was lost: the next holder removes such files."""
    try:
        yield
    except CorruptTable:
        held.assert_held()
        raise


def load_recovered(context: Context, loaded: Loaded | None = None) -> Snapshot:
    """The table as it is now, after every instant was brought to its end that no process works on.

    Where there is nothing to settle it is loaded once, or by the caller, and what a write is going
    to ask of it is read meanwhile.
    """
    snapshot = load_for_writing(context, loaded)
    find = partial(_candidates, context, snapshot, with_plans=False)
    candidates, _ = both(context.storage, find, snapshot.read_ahead)
    if not candidates:
        return snapshot
    recover_failed_instants(context)
    return load_for_writing(context)


def _candidates(context: Context, snapshot: Snapshot, *, with_plans: bool) -> tuple[str, ...]:
    """The instants with which there seems to be anything to do; a hint, as the lock is not held."""
    active = snapshot.timeline.active
    try:
        torn = torn_completion(context, snapshot)
        found = [] if torn is None else [torn.instant]
        if active.pending():
            ledgers = pending_ledgers(context, snapshot)
            found += [one.instant for one in unpublished_in(snapshot, ledgers)]
            rollbacks = pending_rollbacks(active)
            found += [entry.path for entry in rollbacks.torn]
            finder = FailedInstantFinder(
                context, replace(snapshot, ledgers=ledgers), rollbacks, with_plans
            )
            found += [due.instant for due in finder.all_due()]
    except CorruptTable:
        # Files of the timeline go away while others work; under the lock they stay.
        found = [instant.requested for instant in active.pending()]
    return tuple(dict.fromkeys(found))


def _whole_rollbacks(context: Context, snapshot: Snapshot) -> Rollbacks:
    """The rollbacks under way; a torn plan was never published, and goes."""
    rollbacks = pending_rollbacks(snapshot.timeline.active)
    for entry in rollbacks.torn:
        context.storage.delete(entry.path)
    return rollbacks


def _begin_in_time(
    context: Context, held: HeldLock, snapshot: Snapshot, rollbacks: Rollbacks, due: DueInstant
) -> RollbackInProgress | None:
    """None also where others have written upon what was to be rolled back: then it stays."""
    try:
        return _begin_rollback(context, held, snapshot, rollbacks, due)
    except Conflict as overtaken:
        if overtaken.code != LATER_WRITES:
            raise
        return None


def _begin_rollback(
    context: Context, held: HeldLock, snapshot: Snapshot, rollbacks: Rollbacks, due: DueInstant
) -> RollbackInProgress | None:
    """Start the rollback that is due, under the lock; None where nothing is left to do."""
    if due.files is None:
        assert due.rollback is not None
        return _take_over(context, held, snapshot, due.rollback)
    if due.is_leftover and due.files.started_as is Action.INDEXING:
        own = snapshot.ledger(due.files.instant.requested)
        ended = append_cancelled(context, own, Action.INDEXING, PlanScope(), reason=due.reason)
        if ended.ends_in is LedgerEnd.CANCELLED:
            end_build(context, held, snapshot, due.files)
        return None
    if due.is_leftover:
        _remove_leftovers(context, held, due.files)
        return None
    own = snapshot.ledger(due.files.instant.requested)
    pending = rollbacks.pending.get(own.instant)
    if pending is not None and is_committed(own):
        return _take_over(context, held, snapshot, pending)
    ledger = append_cancelled(
        context,
        own,
        due.files.started_as,
        scope_of(snapshot, due.files),
        reason=due.reason,
    )
    if ledger.ends_in is LedgerEnd.COMMITTED:
        return None
    return begin_rollback(context, held, snapshot, rollbacks, due.files)


def _take_over(
    context: Context, held: HeldLock, snapshot: Snapshot, pending: PendingRollback
) -> RollbackInProgress:
    """A rollback whose target has completed, or has left the timeline already."""
    reference = pending.plan.instant_to_rollback
    assert reference is not None
    ledger, action = read_ledger(context.storage, pending.target), Action(reference.action)
    if snapshot.completed_write(pending.target) is None:
        if ledger.ends_in is LedgerEnd.COMMITTED:
            append_withdrawn(context, ledger, action, reason=STARTED_ELSEWHERE)
        else:
            append_cancelled(context, ledger, action, PlanScope(), reason=STARTED_ELSEWHERE)
    in_progress = RollbackInProgress(pending, is_taken_over=True)
    unpublish(context, held, snapshot, in_progress)
    return in_progress


def _remove_leftovers(context: Context, held: HeldLock, files: InstantFiles) -> None:
    """What is left of an instant that is rolled back already, or was never really published."""
    held.assert_held()
    for file in (files.inflight, files.requested):
        if file is not None:
            context.storage.delete(file.entry.path)


def _roll_forward(snapshot: Snapshot, rolled: RolledForward) -> Recovered:
    completed = rolled.instant.completed or ""
    later = (other.completed or "" for other in snapshot.timeline.active.completed())
    return Recovered(
        instant=rolled.instant.requested,
        action=rolled.instant.action,
        repair=Repair.ROLLED_FORWARD,
        is_late=rolled.is_new and any(time > completed for time in later),
    )
