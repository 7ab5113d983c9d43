"""Do the ledgers tell the same as the timeline?"""

from collections.abc import Iterator

from lakewarden.engine.formats.instant_metadata import restore
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.services.inspection.validation.finding import (
    CheckedTable,
    Finding,
    failed,
    ok,
    skipped,
)
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.entries import Withdrawn
from lakewarden.engine.timeline.ledger.ledger import Ledger, instants_with_ledger, read_ledger
from lakewarden.engine.transaction.state.rollback_plans import rollback_of


def check_ledgers(scene: CheckedTable) -> Iterator[Finding]:
    """Entries follow each other as they must, and instants have ended as their ledgers say."""
    instants = instants_with_ledger(scene.state.storage)
    if not instants:
        yield skipped("The table has no ledgers.")
        return
    found = [one for one in (_fault(scene.state, instant) for instant in instants) if one]
    yield from found
    if not found:
        yield ok(f"{len(instants)} ledgers say what the timeline shows.")


def _fault(state: Snapshot, instant: str) -> Finding | None:
    try:
        detail = _contradiction(state, read_ledger(state.storage, instant))
    except CorruptTable as error:
        detail = str(error)
    return None if detail is None else failed(detail, about=instant)


def _contradiction(state: Snapshot, ledger: Ledger) -> str | None:
    """What a ledger denies and the timeline shows, or the other way round.

    A claim may be followed by anything: engines without ledgers execute plans as well. A rollback
    that died before it was published has withdrawn a write that is there as it was.
    """
    known = state.timeline.active.with_time(ledger.instant)
    match ledger.ends_in:
        case LedgerEnd.CANCELLED if not isinstance(ledger.last_whole, Withdrawn) and any(
            one.is_completed and one.action.is_write for one in known
        ):
            return "It ends in a cancellation, but the instant is complete."
        case LedgerEnd.COMMITTED if not known and not _has_its_end(state, ledger.instant):
            return "It ends in a commit, but the timeline does not have the instant."
    return None


def _has_its_end(state: Snapshot, instant: str) -> bool:
    """Whether a committed instant is archived, or was taken back by engines without ledgers."""
    timeline = state.timeline
    if timeline.is_completed(instant) or rollback_of(timeline, instant) is not None:
        return True
    return any(
        instant in restore.decode(timeline.active.read(one), one.requested).instants_to_rollback
        for one in timeline.active.completed((Action.RESTORE,))
        if one.requested > instant
    )
