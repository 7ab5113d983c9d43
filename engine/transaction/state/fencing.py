"""Fencing: a committer makes sure that no other one commits on an older look at the table.

The lock keeps committers apart, unless one stands still for longer than its lock lasts. So before
it decides about conflicts, a committer puts an entry behind the claim of every other pending
instant. One that has decided already, and not yet committed, finds the number of its `committed`
entry taken, and begins its commit anew. Of two that know nothing of each other, each fences the
other: whichever appends `committed` first, the other one's number is gone, or it finds that entry.
"""

from collections.abc import Iterable

from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.entries import Fenced
from lakewarden.engine.timeline.ledger.ledger import Appended, Ledger, read_ledger
from lakewarden.engine.transaction.state.claims import append_entry
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.plan_scope import INGESTION
from lakewarden.engine.transaction.state.service import TABLE_SERVICES


def fence_rivals(context: Context, snapshot: Snapshot, by: str) -> bool:
    """Step `commit.fence`: fence all pending instants but one; False if one has committed.

    The caller has the lock, and has read its own ledger before it reloaded. Instants of engines
    without ledgers cannot be fenced: against those only the lock helps.
    """
    rivals = (ledger for instant, ledger in snapshot.ledgers.items() if instant != by)
    return all(_fence(context, ledger, by) for ledger in rivals if _decides(ledger))


def fence_plans(context: Context, plans: Iterable[str], by: str) -> None:
    """Step `write.fence-plans`: have plans that are executed look again before they commit.

    A cancellable plan gives way to the live writes that it sees. One that looked just before this
    write announced its file groups would commit, and this write would be lost.
    """
    for plan in plans:
        ledger = read_ledger(context.storage, plan)
        if _decides(ledger):
            _fence(context, ledger, by)


def _decides(ledger: Ledger) -> bool:
    """Whether an instant has to look for conflicts before it commits."""
    claim = ledger.last_claim
    is_open = ledger.ends_in is LedgerEnd.CLAIM
    return is_open and claim is not None and claim.action in INGESTION | TABLE_SERVICES


def _fence(context: Context, ledger: Ledger, by: str) -> bool:
    """Whether a fence, or a cancellation, is behind the last claim; False behind a commit."""
    while ledger.ends_in is LedgerEnd.CLAIM:
        last = ledger.last_whole
        assert last is not None
        fence = Fenced(
            instant=ledger.instant,
            action=last.action,
            owner=context.ports.ids.fresh(),
            by=by,
            at_ms=context.now_ms(),
        )
        if isinstance(append_entry(context, ledger, fence), Appended):
            return True
        # Others fence as well, or the instant has been claimed, cancelled or committed.
        ledger = read_ledger(context.storage, ledger.instant)
    return ledger.ends_in is not LedgerEnd.COMMITTED
