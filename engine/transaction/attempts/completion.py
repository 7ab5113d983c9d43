"""Completion: how every instant ends well, by the last steps of a commit under the lock."""

from collections.abc import Callable
from dataclasses import dataclass

from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.kernel.events import Event
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Instant, State
from lakewarden.engine.timeline.ledger.entries import Claim, Committed
from lakewarden.engine.timeline.ledger.ledger import Ledger, LostTo
from lakewarden.engine.timeline.roll_forward import roll_forward
from lakewarden.engine.transaction.attempts.attempt import superseded
from lakewarden.engine.transaction.state.claims import append_entry
from lakewarden.engine.transaction.state.context import Context


@dataclass(frozen=True, slots=True)
class Completion:
    """An instant that has committed; one that is not published yet will be by the next operation.

    Its time is the one in the ledger, unless a writer without a ledger was quicker to complete it.
    """

    instant: Instant
    is_published: bool


def complete(
    context: Context,
    held: HeldLock,
    snapshot: Snapshot,
    ledger: Ledger,
    content: bytes,
    *,
    is_checked: bool = False,
    before_publish: Callable[[Ledger], None] = lambda _: None,
) -> Completion:
    """Commit and publish an instant whose ledger ends in the caller's claim.

    Steps `commit.time`, `commit.append` and `commit.publish`. A crash before `commit.append` leaves
    the instant pending; after it the instant is committed whatever happens, and anyone rolls it
    forward. The lock is asked for right before, unless the caller has just done so.
    """
    claim = ledger.last
    assert isinstance(claim, Claim)
    time = snapshot.times.next()
    assert time > claim.instant
    if not is_checked:
        held.assert_held()
    entry = Committed(
        instant=claim.instant,
        action=claim.action,
        attempt=claim.attempt,
        owner=claim.owner,
        at_ms=context.now_ms(),
        completion_time=time,
        content=content,
    )
    answer = append_entry(context, ledger, entry)
    if isinstance(answer, LostTo):
        raise superseded(claim, answer.entry)
    return _publish(context, snapshot, answer.ledger, entry, before_publish)


def _publish(
    context: Context,
    snapshot: Snapshot,
    ledger: Ledger,
    entry: Committed,
    before_publish: Callable[[Ledger], None],
) -> Completion:
    try:
        before_publish(ledger)
        rolled = roll_forward(context.storage, snapshot.timeline, ledger)
    except LakewardenError as error:
        # An error would say that the commit failed, and it has not.
        figures = {"instant": entry.instant, "reason": str(error)}
        context.ports.events(Event("committed_not_published", figures))
        action = entry.action.completed_as
        instant = Instant(entry.instant, action, State.COMPLETED, entry.completion_time)
        return Completion(instant, is_published=False)
    if rolled.is_new:
        # The next look at the table begins with it.
        path = snapshot.timeline.active.layout.path(rolled.instant)
        context.memory.completed.keep(path, entry.content)
    return Completion(rolled.instant, is_published=True)
