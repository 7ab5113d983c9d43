"""Traces: the markers and signs of life that an instant leaves, removed once it has ended."""

from lakewarden.engine.plans.markers import delete_markers
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.beats import delete_beat, delete_standard_beat
from lakewarden.engine.timeline.ledger import Ledger
from lakewarden.engine.timeline.ledger_entries import Claim


def clear_traces(storage: Storage, ledger: Ledger) -> None:
    """Remove what is of no use any more; a crash leaves some of it, which does no harm."""
    delete_markers(storage, ledger.instant)
    clear_signs(storage, ledger)


def clear_signs(storage: Storage, ledger: Ledger) -> None:
    """Remove the signs of life of all attempts at an instant that has ended."""
    for entry in ledger.entries:
        if isinstance(entry, Claim):
            delete_beat(storage, ledger.instant, entry.attempt)
    delete_standard_beat(storage, ledger.instant)
