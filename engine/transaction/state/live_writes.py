"""Live writes: what is being written at this moment, as far as markers tell.

A write leaves a marker before each file, so that its file groups can be known before it commits.
"""

from collections.abc import Mapping

from lakewarden.engine.conflicts.touched_groups import Touched, TouchKind
from lakewarden.engine.file_groups.file_names import LogFile, parse_file_name
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Instant
from lakewarden.engine.timeline.instants.state import HeartbeatSign, LedgerEnd
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.instant_facts import newest_heartbeat
from lakewarden.engine.transaction.state.markers import MarkedFile, read_markers
from lakewarden.engine.transaction.state.plan_scope import INGESTION


def live_writes(context: Context, snapshot: Snapshot) -> Mapping[Instant, Touched]:
    """The file groups for which live writes have announced files; nothing for a table at rest."""
    found: dict[Instant, Touched] = {}
    for instant in snapshot.timeline.active.pending(INGESTION):
        ledger = snapshot.ledger(instant.requested)
        is_over = ledger.ends_in is LedgerEnd.CANCELLED
        if not is_over and newest_heartbeat(context, ledger) is HeartbeatSign.LIVE:
            marked = read_markers(context.storage, instant.requested) or ()
            found[instant] = _touched(marked)
    return found


def _touched(marked: tuple[MarkedFile, ...]) -> Touched:
    logs: set[FileGroupId] = set()
    bases: set[FileGroupId] = set()
    for file in marked:
        named = parse_file_name(file.name, 0)
        if named is not None:
            key = FileGroupId(file.partition, named.file_id)
            (logs if isinstance(named, LogFile) else bases).add(key)
    return Touched(TouchKind.WRITE, frozenset(logs | bases), appended=frozenset(logs - bases))
