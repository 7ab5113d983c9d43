"""What is looked at of the very instants that are about to leave: to look at all would cost more.

A replace commit stays until the files it replaced are gone: without it they would be read again. An
instant stays while an attempt at it may be alive.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata import replace
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.services.retention.archive_plan import ArchiveHold, ArchivePlan, Barrier
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action, Instant
from lakewarden.engine.timeline.instants.state import HeartbeatSign, LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import Ledger, instants_with_ledger, read_ledger
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.instant_facts import newest_heartbeat
from lakewarden.engine.transaction.state.settings import STORAGE_THREADS


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
