"""What holds an archival back: barriers that only files show, and checks of what leaves."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata import replace
from lakewarden.engine.formats.properties import parse_properties
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.services.compaction.settings import DELTA_COMMITS, TRIGGER, Trigger
from lakewarden.engine.services.retention.archive_plan import (
    ArchiveHold,
    ArchivePlan,
    Barrier,
    behind,
    compaction_barrier,
)
from lakewarden.engine.services.retention.horizon import find_horizon, writes_of
from lakewarden.engine.services.retention.settings import retention_of
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import METADATA_FOLDER, PROPERTIES_PATH, TableType
from lakewarden.engine.timeline.instants.instant import Action, Instant, layout_of
from lakewarden.engine.timeline.instants.state import HeartbeatSign, LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import Ledger, instants_with_ledger, read_ledger
from lakewarden.engine.timeline.timeline import ActiveTimeline, load_active
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.live_attempt import newest_heartbeat
from lakewarden.engine.transaction.state.rollback_plans import pending_rollbacks
from lakewarden.engine.transaction.state.settings import STORAGE_THREADS
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


def read_ledgers(
    context: Context, plan: ArchivePlan, known: Collection[str] = ()
) -> dict[str, Ledger]:
    """The ledgers of the instants of a plan that have one, except those that are known."""
    wanted = {one.requested for one in plan.instants} - set(known)
    chosen = sorted(wanted.intersection(instants_with_ledger(context.storage) if wanted else ()))
    threads = LocalExecutor(min(context.settings[STORAGE_THREADS], max(len(chosen), 1)))
    ledgers = threads.map(partial(read_ledger, context.storage), chosen)
    return dict(zip(chosen, ledgers, strict=True))


def find_checked(
    context: Context, snapshot: Snapshot, plan: ArchivePlan, ledgers: Mapping[str, Ledger]
) -> Barrier | None:
    """The first instant of a plan that has to stay all the same."""
    found = [_open(context, plan, ledgers), _uncleaned(context, snapshot, plan)]
    return min((one for one in found if one), key=lambda one: one.before, default=None)


def _open(context: Context, plan: ArchivePlan, ledgers: Mapping[str, Ledger]) -> Barrier | None:
    for instant in plan.instants:
        ledger = ledgers.get(instant.requested)
        if ledger is not None and _is_open(context, ledger):
            return Barrier(
                hold=ArchiveHold.OPEN,
                before=instant.requested,
                instant=instant.requested,
                why=f"The ledger of {instant.requested} does not say that it has ended.",
            )
    return None


def _is_open(context: Context, ledger: Ledger) -> bool:
    """Whether an attempt may still work on it, by its heartbeats, or a rollback is under way."""
    match ledger.ends_in:
        case LedgerEnd.CANCELLED:
            return True
        case LedgerEnd.CLAIM:
            return newest_heartbeat(context, ledger) is HeartbeatSign.LIVE
        case _:
            return False


def _uncleaned(context: Context, snapshot: Snapshot, plan: ArchivePlan) -> Barrier | None:
    replaced = {
        instant.requested: groups
        for instant in plan.instants
        if instant.action is Action.REPLACE_COMMIT and (groups := _replaced(snapshot, instant))
    }
    if not replaced:
        return None
    partitions = tuple(sorted({key.partition for keys in replaced.values() for key in keys}))
    there = _present(context, snapshot, partitions)
    for requested, groups in replaced.items():
        left = sum(group in there for group in groups)
        if left:
            return Barrier(
                hold=ArchiveHold.UNCLEANED,
                before=requested,
                instant=requested,
                why=f"A clean must still remove {left} file groups that {requested} replaced.",
            )
    return None


def _replaced(snapshot: Snapshot, instant: Instant) -> Sequence[FileGroupId]:
    active = snapshot.timeline.active
    metadata = replace.decode(active.read(instant), active.path(instant))
    return [
        FileGroupId(partition, file_id)
        for partition, file_ids in metadata.partition_to_replace_file_ids.items()
        for file_id in file_ids
    ]


def _present(
    context: Context, snapshot: Snapshot, partitions: tuple[str, ...]
) -> frozenset[FileGroupId]:
    """The file groups that have any file in some partitions, for readers of either listing."""
    sources = [snapshot.source(use_metadata=True), snapshot.source(use_metadata=False)]
    return frozenset(
        FileGroupId(partition, file.file_id)
        for source in sources
        for partition, files in source.files(partitions).items()
        for file in files
    )
