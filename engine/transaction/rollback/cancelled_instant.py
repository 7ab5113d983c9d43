"""Aborting: the removal of an instant that was cancelled; by anyone, and as often as it takes."""

from lakewarden.engine.kernel.errors import Defect
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.timeline.instants.instant import Action, InstantFiles
from lakewarden.engine.timeline.instants.state import HeartbeatSign, LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import Ledger, read_ledger
from lakewarden.engine.transaction.rollback.ended_builds import end_build
from lakewarden.engine.transaction.rollback.execution import (
    RolledBack,
    begin_rollback,
    execute_rollback,
)
from lakewarden.engine.transaction.state.context import Context, reload_under_lock
from lakewarden.engine.transaction.state.live_attempt import newest_heartbeat
from lakewarden.engine.transaction.state.rollback_plans import pending_rollbacks
from lakewarden.engine.transaction.sweep.sweep import (
    clear_behind,
    find_written,
    remove_written,
    schedule_sweep,
)


def abort(context: Context, instant: str) -> RolledBack | None:
    """Roll a cancelled instant back; None if that is left to its live attempt, or done already.

    Steps of `abort`: lock, reload, live, plan, hide, unlock. Then those of `rollback-execution`. A
    crash anywhere leaves a cancelled instant, or one with a pending rollback.
    """
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        ledger = read_ledger(context.storage, instant)
        _assert_cancelled(ledger)
        files = snapshot.pending(instant)
        if files is not None and files.started_as is Action.CLEAN:
            unpublish_clean(context, held, files)
            return None
        if files is not None and files.started_as is Action.INDEXING:
            end_build(context, held, snapshot, files)
            return None
        if files is not None:
            if newest_heartbeat(context, ledger) is HeartbeatSign.LIVE:
                return None
            rollbacks = pending_rollbacks(snapshot.timeline.active)
            in_progress = begin_rollback(context, held, snapshot, rollbacks, files)
    if files is None:
        if ledger.last_whole is not None and ledger.last_whole.action is not Action.INDEXING:
            _remove_leftovers(context, ledger)
        return None
    return execute_rollback(context, in_progress)


def unpublish_clean(context: Context, held: HeldLock, files: InstantFiles) -> None:
    """Take a cancelled clean off the timeline; no attempt had started it, so this is all.

    One that Java has started in spite of it is left to Java.
    """
    if files.requested is not None and files.inflight is None:
        held.assert_held()
        context.storage.delete(files.requested.entry.path)


def _remove_leftovers(context: Context, ledger: Ledger) -> None:
    """Remove the files of an instant that another process has rolled back."""
    written = find_written(context.storage, ledger.instant)
    places = {file.partition for file in written}
    schedule_sweep(context, ledger.instant, places)
    remove_written(context, ledger, 0, written)
    clear_behind(context, ledger, places)


def _assert_cancelled(ledger: Ledger) -> None:
    if ledger.ends_in is not LedgerEnd.CANCELLED:
        raise Defect(
            "not_cancelled",
            what=f"Lakewarden was about to abort {ledger.instant}.",
            why=(
                f"Its ledger ends in {ledger.ends_in.name}, and only a cancelled instant may "
                "be aborted."
            ),
            instant=ledger.instant,
        )
