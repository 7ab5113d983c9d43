"""Rollback on request: the newest write is taken back as if it had never been."""

from lakewarden.engine.formats.payloads.commit import CommitMetadata
from lakewarden.engine.formats.payloads.commit import decode as decode_commit
from lakewarden.engine.formats.payloads.replace import decode as decode_replace
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.plans.abort import abort
from lakewarden.engine.plans.cancel import acknowledge
from lakewarden.engine.plans.cancellation import Ending
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.failed_writes import settle
from lakewarden.engine.plans.moment import look, reload
from lakewarden.engine.plans.plan_scope import INGESTION
from lakewarden.engine.plans.rollback_checks import assert_may_be_taken_back
from lakewarden.engine.plans.rollback_plans import completed_rollback_of, pending_rollbacks
from lakewarden.engine.plans.service import TABLE_SERVICES
from lakewarden.engine.plans.undo import RolledBack, Undoing, begin_undoing, carry_out
from lakewarden.engine.plans.written_files import written_in
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.instant import Action
from lakewarden.engine.timeline.ledger import read_ledger
from lakewarden.engine.timeline.state import LedgerEnd


def rollback(
    context: Context, instant: str, *, reason: str = "rolled back on request"
) -> RolledBack:
    """Take a write back: a failed one, or the newest completed one; twice is once.

    Steps of `rollback`: lock, reload, refuse, plan, compare, withdraw, hide, unlock. Then those of
    `rollback-execution`. A crash before `rollback.plan` leaves the table as it was, after it a
    pending rollback, which the next operation finishes.
    """
    settle(context)
    files = look(context).pending(instant)
    if files is not None and files.begun_as in INGESTION | TABLE_SERVICES:
        answer = acknowledge(context, instant, reason)
        if answer.outcome is not Ending.ALREADY_COMMITTED:
            return _aborted(context, instant) or earlier(context, look(context), instant)
    with context.lock.hold() as held:
        moment = reload(context)
        undoing = _begun(context, held, moment, instant, reason)
    done = None if undoing is None else carry_out(context, undoing)
    return done or earlier(context, look(context), instant)


def _aborted(context: Context, instant: str) -> RolledBack | None:
    """None where somebody without a ledger was quicker."""
    is_ours = read_ledger(context.storage, instant).ends_in is LedgerEnd.CANCELLED
    return abort(context, instant) if is_ours else None


def _begun(
    context: Context, held: HeldLock, moment: Snapshot, instant: str, reason: str
) -> Undoing | None:
    """The rollback of a completed write, begun; None when the write is no more."""
    write = moment.completed_write(instant)
    files = None if write is None else moment.timeline.active.files_of(write)
    if files is None:
        return None
    metadata = metadata_of(moment, files)
    assert_may_be_taken_back(context, moment, files, metadata)
    places = sorted(metadata.partition_to_write_stats)
    written = written_in(context.storage, instant, places)
    rollbacks = pending_rollbacks(moment.timeline.active)
    held.assert_held()
    return begin_undoing(context, held, moment, rollbacks, files, written=written, reason=reason)


def metadata_of(moment: Snapshot, files: InstantFiles) -> CommitMetadata:
    """What a completed write says of itself."""
    assert files.completed is not None
    content = moment.timeline.active.read(files.completed.instant)
    is_replace = files.instant.action is Action.REPLACE_COMMIT
    return (decode_replace if is_replace else decode_commit)(content, files.completed.entry.path)


def earlier(context: Context, moment: Snapshot, instant: str) -> RolledBack:
    """The rollback that somebody else has completed already."""
    active = moment.timeline.active
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
