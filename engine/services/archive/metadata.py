"""Archiving the timeline of the metadata table, which follows that of its table.

The data table's own instants must be found there as long as they are active: a rollback asks for
them. The caller has the data table's lock.
"""

from collections.abc import Iterable

from lakewarden.engine.services.archive.move import move
from lakewarden.engine.services.archive.result import Archived
from lakewarden.engine.services.retention.archive_plan import (
    ArchiveHold,
    ArchiveLimits,
    ArchivePlan,
    Barrier,
    compaction_barrier,
    plan_archive,
)
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.active import ActiveTimeline
from lakewarden.engine.timeline.archived.writer import LsmLimits, compact_and_clean
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES, Action


def archive_metadata(
    storage: Storage,
    active: ActiveTimeline,
    data: ActiveTimeline,
    limits: ArchiveLimits,
    lsm: LsmLimits,
    *,
    deltacommits: int,
    barriers: Iterable[Barrier] = (),
    threads: int = 1,
    dry_run: bool = False,
) -> Archived:
    """Archive what may go; `storage` and `active` are the metadata table's, `data` its table's.

    `deltacommits` is after how many of them it is compacted, `barriers` what else holds it back.
    """
    plan = draft_metadata_archive(
        active, data, limits, deltacommits=deltacommits, barriers=barriers
    )
    if not plan.instants or dry_run:
        return Archived(
            instants=plan.instants,
            oldest_kept=plan.oldest_kept,
            held=plan.held,
            is_dry_run=dry_run,
        )
    moved = move(storage, active, plan.instants, threads=threads)
    compact_and_clean(storage, active.layout.history_folder, lsm)
    return Archived(
        instants=plan.instants,
        oldest_kept=plan.oldest_kept,
        held=plan.held,
        files_deleted=moved.files_deleted,
        found_archived=moved.found_archived,
    )


def draft_metadata_archive(
    active: ActiveTimeline,
    data: ActiveTimeline,
    limits: ArchiveLimits,
    *,
    deltacommits: int,
    barriers: Iterable[Barrier] = (),
) -> ArchivePlan:
    """What an archival would take of the metadata table's timeline."""
    own = [compaction_barrier(active.instants, deltacommits), _of_data(data, limits)]
    return plan_archive(active.instants, [*barriers, *filter(None, own)], limits)


def _of_data(data: ActiveTimeline, limits: ArchiveLimits) -> Barrier | None:
    """The first write of the data table, or the first instant that has not ended there."""
    savepoints = (one for one in data.instants if one.action is Action.SAVEPOINT)
    passed = {one.requested for one in savepoints if limits.goes_beyond_savepoints}
    needed = [
        one
        for one in data.instants
        if not one.is_completed or (one.action in COMPLETED_WRITES and one.requested not in passed)
    ]
    if not needed:
        return None
    first = min(needed)
    return Barrier(
        hold=ArchiveHold.DATA_TABLE,
        before=first.requested,
        instant=first.requested,
        why=f"The table itself still has the {first.action.value} {first.requested}.",
    )
