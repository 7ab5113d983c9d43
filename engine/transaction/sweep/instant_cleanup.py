"""Instant cleanup: the markers and heartbeats of an ended instant are removed."""

from functools import partial

from lakewarden.engine.conflicts.group_hashes import announcement_paths
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.storage.side_by_side import both
from lakewarden.engine.timeline.heartbeats import heartbeat_path, standard_path
from lakewarden.engine.timeline.ledger.entries import Claim
from lakewarden.engine.timeline.ledger.ledger import Ledger
from lakewarden.engine.transaction.state.markers import delete_markers


def clean_up_instant(storage: Storage, ledger: Ledger) -> None:
    """Remove what is of no use any more; a crash leaves some of it, which does no harm."""
    markers, beats = delete_markers, delete_heartbeats
    both(storage, partial(markers, storage, ledger.instant), partial(beats, storage, ledger))


def delete_heartbeats(storage: Storage, ledger: Ledger) -> None:
    """Remove the heartbeats of all attempts at an instant that has ended, and what it announced."""
    claims = (entry for entry in ledger.entries if isinstance(entry, Claim))
    beats = [heartbeat_path(ledger.instant, claim.attempt) for claim in claims]
    announced = announcement_paths(ledger.instant)
    storage.delete_all([*beats, *announced, standard_path(ledger.instant)])
