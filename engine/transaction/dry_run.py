"""Dry runs: what putting in order or rolling back would come to; nothing is changed.

Without the lock all of that is a hint: others may be quicker.
"""

from dataclasses import replace

from lakewarden.engine.metadata.reading.table import FILES
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.cancel.cancel import assert_may_be_cancelled
from lakewarden.engine.transaction.recovery.due_instants import DueInstant, FailedInstantFinder
from lakewarden.engine.transaction.recovery.failed_writes import Recovered, Repair
from lakewarden.engine.transaction.rollback.execution import RolledBack, written_of
from lakewarden.engine.transaction.rollback.metadata_rebuild import untrue_without
from lakewarden.engine.transaction.rollback_request import (
    assert_may_be_taken_back,
    earlier,
    metadata_of,
)
from lakewarden.engine.transaction.state.context import (
    TABLE_SERVICES,
    Context,
    load_for_writing,
    pending_ledgers,
    unpublished_in,
)
from lakewarden.engine.transaction.state.ledger_end import scope_of
from lakewarden.engine.transaction.state.plan_scope import INGESTION
from lakewarden.engine.transaction.state.rollback_plans import Rollbacks, pending_rollbacks
from lakewarden.engine.transaction.sweep.sweep import find_written, look_at_paths, written_in


def dry_run_recovery(context: Context, *, with_plans: bool = False) -> tuple[Recovered, ...]:
    """The instants that would be brought to their end, each with the files that would go."""
    snapshot = _load(context)
    rollbacks = pending_rollbacks(snapshot.timeline.active)
    unpublished = {ledger.instant for ledger in unpublished_in(snapshot, snapshot.ledgers)}
    forwarded = tuple(
        Recovered(
            instant=files.instant.requested, action=files.started_as, repair=Repair.ROLLED_FORWARD
        )
        for files in snapshot.timeline.active.files
        if files.completed is None and files.instant.requested in unpublished
    )
    finder = FailedInstantFinder(context, snapshot, rollbacks, with_plans)
    undone = (_rollback(context, snapshot, due) for due in finder.all_due() if not due.is_leftover)
    return (*forwarded, *undone)


def dry_run_rollback(context: Context, instant: str) -> RolledBack:
    """What taking a write back would remove; whatever stands in its way is raised."""
    snapshot = _load(context)
    rollbacks = pending_rollbacks(snapshot.timeline.active)
    pending = snapshot.pending(instant)
    if pending is not None and pending.started_as in INGESTION | TABLE_SERVICES:
        scope = scope_of(snapshot, pending)
        assert_may_be_cancelled(context, snapshot, pending, scope, force=False)
        written = written_of(context, snapshot, pending, snapshot.ledger(instant))
        paths = [file.path for file in written]
        return _rolled_back(context, pending.started_as, instant, rollbacks, paths)
    write = snapshot.completed_write(instant)
    files = None if write is None else snapshot.timeline.active.files_of(write)
    if files is None:
        return replace(earlier(context, snapshot, instant), is_dry_run=True)
    metadata = metadata_of(snapshot, files)
    assert_may_be_taken_back(context, snapshot, files, metadata)
    places = sorted(metadata.partition_to_write_stats)
    paths = [file.path for file in written_in(context.storage, instant, places)]
    done = _rolled_back(context, files.instant.action, instant, rollbacks, paths)
    untrue = untrue_without(context, snapshot, [files])
    return replace(done, metadata_dropped=tuple(one for one in untrue if one != FILES))


def _load(context: Context) -> Snapshot:
    snapshot = load_for_writing(context)
    return replace(snapshot, ledgers=pending_ledgers(context, snapshot))


def _rollback(context: Context, snapshot: Snapshot, due: DueInstant) -> Recovered:
    planned = None if due.rollback is None else due.rollback.plan.instant_to_rollback
    if due.files is None:
        assert planned is not None
        written = find_written(context.storage, due.instant)
        action = Action(planned.action)
    else:
        written = written_of(context, snapshot, due.files, snapshot.ledger(due.instant))
        action = due.files.started_as
    there = look_at_paths(context, [file.path for file in written])
    return Recovered(
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
