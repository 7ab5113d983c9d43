"""Live writes: what is being written at this moment, as far as markers tell.

A write leaves a marker before each file, so that its file groups can be known before it commits.
"""

from collections.abc import Mapping

from lakewarden.engine.locks.touched import Kind, Touched
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.evidence import newest_sign
from lakewarden.engine.plans.markers import MarkedFile, read_markers
from lakewarden.engine.plans.plan_scope import INGESTION
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instant import Instant
from lakewarden.engine.timeline.state import BeatSign, LedgerEnd
from lakewarden.engine.view.file_names import LogFile, parse_file_name
from lakewarden.engine.view.slices import SliceKey


def live_writes(context: Context, moment: Snapshot) -> Mapping[Instant, Touched]:
    """The file groups for which live writes have announced files; nothing for a table at rest."""
    found: dict[Instant, Touched] = {}
    for instant in moment.timeline.active.pending(INGESTION):
        ledger = moment.ledger(instant.requested)
        is_over = ledger.ends_in is LedgerEnd.CANCELLED
        if not is_over and newest_sign(context, ledger) is BeatSign.LIVE:
            marked = read_markers(context.storage, instant.requested) or ()
            found[instant] = _touched(marked)
    return found


def _touched(marked: tuple[MarkedFile, ...]) -> Touched:
    logs: set[SliceKey] = set()
    bases: set[SliceKey] = set()
    for file in marked:
        named = parse_file_name(file.name, 0)
        if named is not None:
            key = SliceKey(file.partition, named.file_id)
            (logs if isinstance(named, LogFile) else bases).add(key)
    return Touched(Kind.WRITE, frozenset(logs | bases), appended=frozenset(logs - bases))
