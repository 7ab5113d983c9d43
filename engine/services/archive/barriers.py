"""The barriers that only files tell: what clean, sweeps and the metadata table hold back."""

import re
from collections.abc import Iterator

from lakewarden.engine.formats.properties import parse_properties
from lakewarden.engine.services.compaction.settings import DELTA_COMMITS, TRIGGER
from lakewarden.engine.services.compaction.triggers import Trigger
from lakewarden.engine.services.retention.archive_plan import (
    ArchiveHold,
    Barrier,
    behind,
    compaction_barrier,
)
from lakewarden.engine.services.retention.clean_settings import retention_of
from lakewarden.engine.services.retention.horizon import find_horizon, writes_of
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import METADATA_FOLDER, PROPERTIES_PATH, TableType
from lakewarden.engine.timeline.active import ActiveTimeline, load_active
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.instants.layouts import layout_of
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.rollback_plans import pending_rollbacks
from lakewarden.engine.transaction.sweep.sweep import SWEEPS_FOLDER

_SWEEP_NAME = re.compile(r"[0-9]+\.([0-9]+)\.json")
_COUNTING = (Trigger.NUM_COMMITS, Trigger.NUM_AND_TIME)


def find_barriers(context: Context, snapshot: Snapshot) -> tuple[Barrier, ...]:
    """What holds back an archival of a table at a moment, besides its own timeline."""
    found = [*_of_clean(context, snapshot), *_of_metadata(context.storage, snapshot)]
    return (*found, *_of_compaction(context, snapshot), *_of_undoing(context, snapshot))


def _of_clean(context: Context, snapshot: Snapshot) -> Iterator[Barrier]:
    """The commits that a clean retains, which it has to find on the active timeline."""
    retention = retention_of(context.settings)
    horizon = find_horizon(
        writes_of(snapshot), retention, now_ms=context.now_ms(), zone=snapshot.layout.zone
    )
    if horizon.instant is not None:
        yield Barrier(
            hold=ArchiveHold.RETAINED,
            before=horizon.instant.requested,
            instant=horizon.instant.requested
            if horizon.held_by is None
            else horizon.held_by.requested,
            why=f"A clean retains commits from {horizon.instant.requested} on.",
        )


def _of_metadata(storage: Storage, snapshot: Snapshot) -> Iterator[Barrier]:
    """What the metadata table has not compacted: its logs are judged by the table's timeline."""
    if not snapshot.config.metadata_partitions:
        return
    compacted = newest_compaction(metadata_timeline(storage))
    if compacted is None:
        why = "The metadata table was never compacted, and its logs need the timeline."
        yield Barrier(hold=ArchiveHold.METADATA, before="", why=why)
        return
    later = snapshot.timeline.active.completed_between(compacted, None)
    first = min((one.requested for one in later), default=None)
    if first is not None:
        yield Barrier(
            hold=ArchiveHold.METADATA,
            before=first,
            instant=compacted,
            why=f"The metadata table was last compacted at {compacted}.",
        )


def metadata_timeline(storage: Storage) -> ActiveTimeline:
    """The active timeline of a table's metadata table."""
    own = storage.below(METADATA_FOLDER)
    return load_active(own, layout_of(parse_properties(own.read(PROPERTIES_PATH), PROPERTIES_PATH)))


def newest_compaction(metadata: ActiveTimeline) -> str | None:
    """The newest completed compaction of a metadata table."""
    commits = metadata.completed((Action.COMMIT,))
    return max((one.requested for one in commits), default=None)


def _of_compaction(context: Context, snapshot: Snapshot) -> Iterator[Barrier]:
    is_counted = context.settings[TRIGGER] in _COUNTING
    if snapshot.config.table_type is TableType.MERGE_ON_READ and is_counted:
        instants = snapshot.timeline.active.instants
        barrier = compaction_barrier(instants, context.settings[DELTA_COMMITS])
        if barrier is not None:
            yield barrier


def _of_undoing(context: Context, snapshot: Snapshot) -> Iterator[Barrier]:
    """Instants whose files may still go, or still come, though they are off the timeline."""
    instants = snapshot.timeline.active.instants
    for target, pending in pending_rollbacks(snapshot.timeline.active).pending.items():
        why = f"The rollback {pending.instant} of {target} has not ended."
        yield Barrier(
            hold=ArchiveHold.ROLLBACK,
            before=behind(instants, target),
            instant=pending.instant,
            why=why,
        )
    for file in context.storage.list(SWEEPS_FOLDER).files:
        match = _SWEEP_NAME.fullmatch(file.name)
        if match:
            # What is older than the active timeline counts as completed, late files of it, too.
            why = f"A paused writer may still leave files of {match[1]}, which was rolled back."
            before = behind(instants, match[1])
            yield Barrier(hold=ArchiveHold.SWEEP, before=before, instant=match[1], why=why)
