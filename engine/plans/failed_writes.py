"""Failed writes: what was begun and not ended is published if it had committed, else undone.

A live attempt is never touched, whatever the policy. Plans of services wait for whoever carries
them out: a write rolls back only those that were cancelled, a clean gives up cancellable ones whose
time is over, and an immutable one is never given up.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum

from lakewarden.engine.kernel.errors import Conflict, CorruptTable
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.plans.cancelling import append_cancelled, append_withdrawn, scope_of
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.due import Due, Eyes
from lakewarden.engine.plans.moment import (
    is_committed,
    look,
    pending_ledgers,
    reload,
    torn_completion,
    unpublished_in,
)
from lakewarden.engine.plans.plan_scope import PlanScope
from lakewarden.engine.plans.rollback_plans import PendingRollback, Rollbacks, pending_rollbacks
from lakewarden.engine.plans.undo import (
    BEGUN_ELSEWHERE,
    LATER_WRITES,
    Undoing,
    begin_undoing,
    carry_out,
    unpublish,
)
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.instant import Action
from lakewarden.engine.timeline.ledger import read_ledger
from lakewarden.engine.timeline.roll_forward import RolledForward
from lakewarden.engine.timeline.state import LedgerEnd


class Repair(StrEnum):
    """What was done about an instant."""

    ROLLED_FORWARD = "rolled_forward"
    ROLLED_BACK = "rolled_back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """An instant that hung in the air and does so no more."""

    instant: str
    action: Action
    repair: Repair
    rollback: str | None = None
    files_deleted: int = 0
    # Published behind others that completed later: an incremental reader may have moved on.
    is_late: bool = False


def settle(context: Context, *, with_plans: bool = False) -> tuple[Settled, ...]:
    """Bring every instant to its end that nobody works on; without any it is one look at the table.

    With plans, as a clean asks for it, cancellable ones are given up that were begun and left, or
    that have waited too long to be begun with. Steps of `recover`: find, lock, reload, due, cancel,
    plan, hide, unlock, execute. All from the lock to the unlock is done for each instant in a lock
    of its own. A crash anywhere leaves instants that the next call settles.
    """
    settled: list[Settled] = []
    begun: list[Undoing] = []
    for instant in _candidates(context, look(context), with_plans=with_plans):
        with context.lock.hold() as held, _as_holder(held):
            moment = reload(context)
            settled += [_forwarded(moment, rolled) for rolled in moment.rolled_forward]
            rollbacks = _whole_rollbacks(context, moment)
            eyes = Eyes(context, moment, rollbacks, with_plans)
            for due in tuple(eyes.all_due(instant)):
                undoing = _begun_in_time(context, held, moment, rollbacks, due)
                if undoing is not None:
                    begun.append(undoing)
    for undoing in begun:
        done = carry_out(context, undoing)
        if done is not None:
            settled.append(
                Settled(
                    instant=done.instant,
                    action=done.action,
                    repair=Repair.ROLLED_BACK,
                    rollback=done.rollback,
                    files_deleted=done.files_deleted,
                )
            )
    return tuple(settled)


@contextmanager
def _as_holder(held: HeldLock) -> Iterator[None]:
    """Files that somebody misses who has lost the lock were removed by its next holder."""
    try:
        yield
    except CorruptTable:
        held.assert_held()
        raise


def load_settled(context: Context, config: TableConfig | None = None) -> Snapshot:
    """The table as it is now, after every instant was brought to its end that no process works on.

    Where there is nothing to settle it is loaded once, with the properties that are given.
    """
    snapshot = look(context, config=config)
    if not _candidates(context, snapshot, with_plans=False):
        return snapshot
    settle(context)
    return look(context)


def _candidates(context: Context, moment: Snapshot, *, with_plans: bool) -> tuple[str, ...]:
    """The instants with which there seems to be anything to do; a hint, as the lock is not held."""
    active = moment.timeline.active
    try:
        torn = torn_completion(context, moment)
        found = [] if torn is None else [torn.instant]
        if active.pending():
            ledgers = pending_ledgers(context, moment)
            found += [one.instant for one in unpublished_in(moment, ledgers)]
            rollbacks = pending_rollbacks(active)
            found += [entry.path for entry in rollbacks.torn]
            eyes = Eyes(context, replace(moment, ledgers=ledgers), rollbacks, with_plans)
            found += [due.instant for due in eyes.all_due()]
    except CorruptTable:
        # Files of the timeline go away while others work; under the lock they stay.
        found = [instant.requested for instant in active.pending()]
    return tuple(dict.fromkeys(found))


def _whole_rollbacks(context: Context, moment: Snapshot) -> Rollbacks:
    """The rollbacks under way; a torn plan was never published, and goes."""
    rollbacks = pending_rollbacks(moment.timeline.active)
    for entry in rollbacks.torn:
        context.storage.delete(entry.path)
    return rollbacks


def _begun_in_time(
    context: Context, held: HeldLock, moment: Snapshot, rollbacks: Rollbacks, due: Due
) -> Undoing | None:
    """None also where others have written upon what was to be rolled back: then it stays."""
    try:
        return _begun(context, held, moment, rollbacks, due)
    except Conflict as overtaken:
        if overtaken.code != LATER_WRITES:
            raise
        return None


def _begun(
    context: Context, held: HeldLock, moment: Snapshot, rollbacks: Rollbacks, due: Due
) -> Undoing | None:
    """Begin with what is due, under the lock; None where nothing is left to carry out."""
    if due.files is None:
        assert due.rollback is not None
        return _taken_over(context, held, moment, due.rollback)
    if due.is_remains:
        _remove_remains(context, held, due.files)
        return None
    own = moment.ledger(due.files.instant.requested)
    pending = rollbacks.pending.get(own.instant)
    if pending is not None and is_committed(own):
        return _taken_over(context, held, moment, pending)
    ledger = append_cancelled(
        context,
        own,
        due.files.begun_as,
        scope_of(moment, due.files),
        reason=due.reason,
    )
    if ledger.ends_in is LedgerEnd.COMMITTED:
        return None
    return begin_undoing(context, held, moment, rollbacks, due.files)


def _taken_over(
    context: Context, held: HeldLock, moment: Snapshot, pending: PendingRollback
) -> Undoing:
    """A rollback whose target has completed, or has left the timeline already."""
    reference = pending.plan.instant_to_rollback
    assert reference is not None
    ledger, action = read_ledger(context.storage, pending.target), Action(reference.action)
    if moment.completed_write(pending.target) is None:
        if ledger.ends_in is LedgerEnd.COMMITTED:
            append_withdrawn(context, ledger, action, reason=BEGUN_ELSEWHERE)
        else:
            append_cancelled(context, ledger, action, PlanScope(), reason=BEGUN_ELSEWHERE)
    undoing = Undoing(pending, is_taken_over=True)
    unpublish(context, held, moment, undoing)
    return undoing


def _remove_remains(context: Context, held: HeldLock, files: InstantFiles) -> None:
    """What is left of an instant that is rolled back already, or was never really published."""
    held.assert_held()
    for file in (files.inflight, files.requested):
        if file is not None:
            context.storage.delete(file.entry.path)


def _forwarded(moment: Snapshot, rolled: RolledForward) -> Settled:
    completed = rolled.instant.completed or ""
    later = (other.completed or "" for other in moment.timeline.active.completed())
    return Settled(
        instant=rolled.instant.requested,
        action=rolled.instant.action,
        repair=Repair.ROLLED_FORWARD,
        is_late=rolled.is_new and any(time > completed for time in later),
    )
