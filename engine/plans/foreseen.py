"""Foreseeing: what putting in order or rolling back would come to; nothing is changed.

Without the lock all of that is a hint: others may be quicker.
"""

from dataclasses import replace

from lakewarden.engine.metadata.table import FILES
from lakewarden.engine.plans.cancel_checks import assert_may_be_cancelled
from lakewarden.engine.plans.cancelling import scope_of
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.due import Due, Eyes
from lakewarden.engine.plans.failed_writes import Repair, Settled
from lakewarden.engine.plans.metadata_rebuild import untrue_without
from lakewarden.engine.plans.moment import look, pending_ledgers, unpublished_in
from lakewarden.engine.plans.plan_scope import INGESTION
from lakewarden.engine.plans.rollback import earlier, metadata_of
from lakewarden.engine.plans.rollback_checks import assert_may_be_taken_back
from lakewarden.engine.plans.rollback_plans import Rollbacks, pending_rollbacks
from lakewarden.engine.plans.service import TABLE_SERVICES
from lakewarden.engine.plans.undo import RolledBack, written_of
from lakewarden.engine.plans.written_files import find_written, look_at_paths, written_in
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instant import Action


def foresee_settling(context: Context, *, with_plans: bool = False) -> tuple[Settled, ...]:
    """The instants that would be brought to their end, each with the files that would go."""
    moment = _looked(context)
    rollbacks = pending_rollbacks(moment.timeline.active)
    unpublished = {ledger.instant for ledger in unpublished_in(moment, moment.ledgers)}
    forwarded = tuple(
        Settled(
            instant=files.instant.requested, action=files.begun_as, repair=Repair.ROLLED_FORWARD
        )
        for files in moment.timeline.active.files
        if files.completed is None and files.instant.requested in unpublished
    )
    eyes = Eyes(context, moment, rollbacks, with_plans)
    undone = (_undone(context, moment, due) for due in eyes.all_due() if not due.is_remains)
    return (*forwarded, *undone)


def foresee_rollback(context: Context, instant: str) -> RolledBack:
    """What taking a write back would remove; whatever stands in its way is raised."""
    moment = _looked(context)
    rollbacks = pending_rollbacks(moment.timeline.active)
    pending = moment.pending(instant)
    if pending is not None and pending.begun_as in INGESTION | TABLE_SERVICES:
        scope = scope_of(moment, pending)
        assert_may_be_cancelled(context, moment, pending, scope, force=False)
        written = written_of(context, moment, pending, moment.ledger(instant))
        paths = [file.path for file in written]
        return _rolled_back(context, pending.begun_as, instant, rollbacks, paths)
    write = moment.completed_write(instant)
    files = None if write is None else moment.timeline.active.files_of(write)
    if files is None:
        return replace(earlier(context, moment, instant), is_dry_run=True)
    metadata = metadata_of(moment, files)
    assert_may_be_taken_back(context, moment, files, metadata)
    places = sorted(metadata.partition_to_write_stats)
    paths = [file.path for file in written_in(context.storage, instant, places)]
    done = _rolled_back(context, files.instant.action, instant, rollbacks, paths)
    untrue = untrue_without(context, moment, [files])
    return replace(done, metadata_dropped=tuple(one for one in untrue if one != FILES))


def _looked(context: Context) -> Snapshot:
    moment = look(context)
    return replace(moment, ledgers=pending_ledgers(context, moment))


def _undone(context: Context, moment: Snapshot, due: Due) -> Settled:
    planned = None if due.rollback is None else due.rollback.plan.instant_to_rollback
    if due.files is None:
        assert planned is not None
        written = find_written(context.storage, due.instant)
        action = Action(planned.action)
    else:
        written = written_of(context, moment, due.files, moment.ledger(due.instant))
        action = due.files.begun_as
    there = look_at_paths(context, [file.path for file in written])
    return Settled(
        instant=due.instant,
        action=action,
        repair=Repair.ROLLED_BACK,
        files_deleted=sum(entry is not None for entry in there),
    )


def _rolled_back(
    context: Context, action: Action, instant: str, rollbacks: Rollbacks, paths: list[str]
) -> RolledBack:
    entries = [entry for entry in look_at_paths(context, paths) if entry is not None]
    return RolledBack(
        instant,
        action,
        rollback="",
        completed="",
        files_deleted=len(entries),
        is_taken_over=instant in rollbacks.pending,
        bytes_deleted=sum(entry.size_bytes for entry in entries),
        is_dry_run=True,
    )
