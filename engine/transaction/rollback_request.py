"""Rollback on request: the newest write is taken back as if it had never been."""

from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata
from lakewarden.engine.formats.instant_metadata.commit import decode as decode_commit
from lakewarden.engine.formats.instant_metadata.replace import decode as decode_replace
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.cancel.cancel import acknowledge
from lakewarden.engine.transaction.cancel.cancellation import Ending
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.rollback.cancelled_instant import abort
from lakewarden.engine.transaction.rollback.execution import (
    RollbackInProgress,
    RolledBack,
    begin_rollback,
    execute_rollback,
)
from lakewarden.engine.transaction.rollback_checks import assert_may_be_taken_back
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.loading import load_for_writing, reload_under_lock
from lakewarden.engine.transaction.state.plan_scope import INGESTION
from lakewarden.engine.transaction.state.rollback_plans import (
    completed_rollback_of,
    pending_rollbacks,
)
from lakewarden.engine.transaction.state.service import TABLE_SERVICES
from lakewarden.engine.transaction.sweep.written_files import written_in


def rollback(
    context: Context, instant: str, *, reason: str = "rolled back on request"
) -> RolledBack:
    """Take a write back: a failed one, or the newest completed one; twice is once.

    Steps of `rollback`: lock, reload, refuse, plan, compare, withdraw, hide, unlock. Then those of
    `rollback-execution`. A crash before `rollback.plan` leaves the table as it was, after it a
    pending rollback, which the next operation finishes.
    """
    recover_failed_instants(context)
    files = load_for_writing(context).pending(instant)
    if files is not None and files.started_as in INGESTION | TABLE_SERVICES:
        answer = acknowledge(context, instant, reason)
        if answer.outcome is not Ending.ALREADY_COMMITTED:
            return _abort(context, instant) or earlier(context, load_for_writing(context), instant)
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        in_progress = _begin(context, held, snapshot, instant, reason)
    done = None if in_progress is None else execute_rollback(context, in_progress)
    return done or earlier(context, load_for_writing(context), instant)


def _abort(context: Context, instant: str) -> RolledBack | None:
    """None where a writer without a ledger was quicker."""
    is_ours = read_ledger(context.storage, instant).ends_in is LedgerEnd.CANCELLED
    return abort(context, instant) if is_ours else None


def _begin(
    context: Context, held: HeldLock, snapshot: Snapshot, instant: str, reason: str
) -> RollbackInProgress | None:
    """The rollback of a completed write, started; None when the write is no more."""
    write = snapshot.completed_write(instant)
    files = None if write is None else snapshot.timeline.active.files_of(write)
    if files is None:
        return None
    metadata = metadata_of(snapshot, files)
    assert_may_be_taken_back(context, snapshot, files, metadata)
    places = sorted(metadata.partition_to_write_stats)
    written = written_in(context.storage, instant, places)
    rollbacks = pending_rollbacks(snapshot.timeline.active)
    held.assert_held()
    return begin_rollback(context, held, snapshot, rollbacks, files, written=written, reason=reason)


def metadata_of(snapshot: Snapshot, files: InstantFiles) -> CommitMetadata:
    """What a completed write says of itself."""
    assert files.completed is not None
    content = snapshot.timeline.active.read(files.completed.instant)
    is_replace = files.instant.action is Action.REPLACE_COMMIT
    return (decode_replace if is_replace else decode_commit)(content, files.completed.entry.path)


def earlier(context: Context, snapshot: Snapshot, instant: str) -> RolledBack:
    """The rollback that another process has completed already."""
    active = snapshot.timeline.active
    by = completed_rollback_of(active, instant)
    done = next((one for one in active.completed((Action.ROLLBACK,)) if one.requested == by), None)
    if done is None or done.completed is None:
        raise InvalidRequest(
            "unknown_instant",
            what=f"The active timeline has no write {instant} to roll back.",
            why="It may be archived, or never existed.",
            now="Look at the timeline for the newest write.",
            instant=instant,
        )
    action = read_ledger(context.storage, instant).last_whole
    return RolledBack(
        instant,
        Action.COMMIT if action is None else action.action,
        done.requested,
        done.completed,
        files_deleted=0,
        is_taken_over=True,
    )
