"""Completion: how every instant ends well, by the last steps of a commit under the lock."""

from dataclasses import dataclass

from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.kernel.events import Event
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.plans.attempt import superseded
from lakewarden.engine.plans.claims import appended
from lakewarden.engine.plans.context import Context
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instant import Instant, State
from lakewarden.engine.timeline.ledger import Ledger, LostTo
from lakewarden.engine.timeline.ledger_entries import Claim, Committed
from lakewarden.engine.timeline.roll_forward import roll_forward


@dataclass(frozen=True, slots=True)
class Completion:
    """An instant that has committed; one that is not published yet will be by the next operation.

    Its time is the one in the ledger, unless somebody without a ledger was quicker to complete it.
    """

    instant: Instant
    is_published: bool


def complete(
    context: Context, held: HeldLock, moment: Snapshot, ledger: Ledger, content: bytes
) -> Completion:
    """Commit and publish an instant whose ledger ends in the caller's claim.

    Steps `commit.time`, `commit.append` and `commit.publish`. A crash before `commit.append` leaves
    the instant pending; after it the instant is committed whatever happens, and anyone rolls it
    forward.
    """
    claim = ledger.last
    assert isinstance(claim, Claim)
    time = moment.times.next()
    assert time > claim.instant
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
    answer = appended(context, ledger, entry)
    if isinstance(answer, LostTo):
        raise superseded(claim, answer.entry)
    return _published(context, moment, answer.ledger, entry)


def _published(context: Context, moment: Snapshot, ledger: Ledger, entry: Committed) -> Completion:
    try:
        rolled = roll_forward(context.storage, moment.timeline, ledger)
    except LakewardenError as error:
        # An error would say that the commit failed, and it has not.
        figures = {"instant": entry.instant, "reason": str(error)}
        context.ports.events(Event("committed_not_published", figures))
        action = entry.action.completed_as
        instant = Instant(entry.instant, action, State.COMPLETED, entry.completion_time)
        return Completion(instant, is_published=False)
    return Completion(rolled.instant, is_published=True)
