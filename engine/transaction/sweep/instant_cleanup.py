"""Instant cleanup: the markers and heartbeats of an ended instant are removed."""

from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.heartbeats import delete_heartbeat, delete_standard_heartbeat
from lakewarden.engine.timeline.ledger.entries import Claim
from lakewarden.engine.timeline.ledger.ledger import Ledger
from lakewarden.engine.transaction.state.markers import delete_markers


def clean_up_instant(storage: Storage, ledger: Ledger) -> None:
    """Remove what is of no use any more; a crash leaves some of it, which does no harm."""
    delete_markers(storage, ledger.instant)
    delete_heartbeats(storage, ledger)


def delete_heartbeats(storage: Storage, ledger: Ledger) -> None:
    """Remove the heartbeats of all attempts at an instant that has ended."""
    for entry in ledger.entries:
        if isinstance(entry, Claim):
            delete_heartbeat(storage, ledger.instant, entry.attempt)
    delete_standard_heartbeat(storage, ledger.instant)
