"""Leftovers: what instants that have ended leave behind, and the protocol leaves to a clean.

Markers and heartbeats go once their instant has ended; the ledger of one that was rolled back
goes when its sweep is done, and the next plan of its service has looked at its partitions.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.metadata.writing.builds import builds_with_notes, forget_notes
from lakewarden.engine.timeline.heartbeats import BEATS_FOLDER, STANDARD_FOLDER
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import (
    LEDGER_FOLDER,
    instants_with_ledger,
    read_ledger,
)
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.instant_facts import is_recent
from lakewarden.engine.transaction.state.loading import load_for_writing
from lakewarden.engine.transaction.state.markers import TEMP_FOLDER, delete_markers
from lakewarden.engine.transaction.state.service import Service
from lakewarden.engine.transaction.sweep.sweep import SWEEPS_FOLDER
from lakewarden.engine.transaction.window.window import heard_of, is_returned

_INSTANT = re.compile(r"[0-9]{14,}")
_SWEEP = re.compile(r"[0-9]+\.([0-9]+)\.json")


@dataclass(frozen=True, slots=True)
class _Leftovers:
    """What is known of instants that have left something."""

    context: Context
    # Those that are to be looked at again: their markers and ledgers are still of use.
    swept_later: frozenset[str]
    # The instants of the timeline by time, and whether all that have it are completed.
    on_timeline: Mapping[str, bool]
    # Until when the last plan of each service has heard of what was cancelled.
    heard_ms: Mapping[Service, int | None]

    def has_ended(self, instant: str) -> bool:
        """Whether no attempt at an instant is alive, and its files need no cleanup any more."""
        if instant in self.swept_later:
            return False
        if instant in self.on_timeline:
            return self.on_timeline[instant]
        return _end_of(self.context, instant) is not LedgerEnd.CLAIM

    def may_be_forgotten(self, instant: str) -> bool:
        """Whether the ledger of an instant that was rolled back has served its purpose."""
        if instant in self.swept_later or instant in self.on_timeline:
            return False
        try:
            ledger = read_ledger(self.context.storage, instant)
        except CorruptTable as error:
            if error.code != "missing_file":
                raise
            # Another clean is just removing it.
            return False
        is_over = ledger.ends_in is LedgerEnd.CANCELLED
        return is_over and is_returned(ledger, self.heard_ms)


def delete_leftovers(context: Context) -> int:
    """Remove what ended instants have left; the number of those instants.

    The folders are listed before the timeline: an instant is published before it leaves anything
    but its first heartbeat, and recent heartbeats stay.
    """
    marked = [_last(folder) for folder in context.storage.list(TEMP_FOLDER).folders]
    heartbeats = [
        entry
        for folder in (BEATS_FOLDER, STANDARD_FOLDER)
        for entry in context.storage.list(folder).files
        if not is_recent(context, entry.modified_ms)
    ]
    with_ledger = instants_with_ledger(context.storage)
    with_notes = builds_with_notes(context.storage)
    matches = (_SWEEP.fullmatch(file.name) for file in context.storage.list(SWEEPS_FOLDER).files)
    swept_later = frozenset(match[1] for match in matches if match is not None)
    snapshot = load_for_writing(context)
    on_timeline: dict[str, bool] = {}
    for one in snapshot.timeline.active.instants:
        on_timeline[one.requested] = on_timeline.get(one.requested, True) and one.is_completed
    remains = _Leftovers(context, swept_later, on_timeline, heard_of(context, snapshot))
    cleared: set[str] = set()
    for instant in filter(_INSTANT.fullmatch, marked):
        if remains.has_ended(instant):
            delete_markers(context.storage, instant)
            cleared.add(instant)
    for entry in heartbeats:
        instant = entry.name.partition(".")[0]
        if _INSTANT.fullmatch(instant) and remains.has_ended(instant):
            context.storage.delete(entry.path)
            cleared.add(instant)
    for instant in with_notes:
        if on_timeline.get(instant, True):
            forget_notes(context.storage, instant)
            cleared.add(instant)
    for instant in with_ledger:
        if remains.may_be_forgotten(instant):
            _forget(context, instant)
            cleared.add(instant)
    return len(cleared)


def _forget(context: Context, instant: str) -> None:
    """Remove a ledger, its end last, so that a reader in between sees it ended."""
    entries = context.storage.list(f"{LEDGER_FOLDER}/{instant}").files
    for path in sorted(entry.path for entry in entries):
        context.storage.delete(path)


def _end_of(context: Context, instant: str) -> LedgerEnd:
    try:
        return read_ledger(context.storage, instant).ends_in
    except CorruptTable:
        return LedgerEnd.CLAIM


def _last(folder: str) -> str:
    return folder.rstrip("/").rpartition("/")[2]
