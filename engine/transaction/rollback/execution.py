"""Rollback execution: the rollback of one instant, started by us or by Java, finished by any
writer.

The end is an ordinary rollback that every Hudi reader and writer understands. One instant has one
rollback, which is taken over and never planned again.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from lakewarden.engine.file_groups.file_names import parse_file_name
from lakewarden.engine.formats.instant_metadata import rollback
from lakewarden.engine.formats.instant_metadata.rollback import (
    InstantReference,
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    RollbackRequest,
)
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest, corrupt
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.metadata.writing.writer import rollback_change
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import METADATA_FOLDER
from lakewarden.engine.timeline.heartbeats import delete_standard_heartbeat
from lakewarden.engine.timeline.instants.instant import Action, Instant, InstantFiles, State
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import (
    Appended,
    Ledger,
    assert_may_delete,
    read_ledger,
)
from lakewarden.engine.transaction.attempts.attempt import complete
from lakewarden.engine.transaction.attempts.publish import create_inflight, publish_in
from lakewarden.engine.transaction.rollback.metadata_rebuild import (
    drop_untrue,
    rebuild,
    untrue_without,
)
from lakewarden.engine.transaction.state.claims import append_claim
from lakewarden.engine.transaction.state.context import (
    TABLE_SERVICES,
    Context,
    load_for_writing,
    reload_under_lock,
)
from lakewarden.engine.transaction.state.ledger_end import append_withdrawn, scope_of
from lakewarden.engine.transaction.state.markers import MarkedFile
from lakewarden.engine.transaction.state.rollback_plans import PendingRollback, Rollbacks
from lakewarden.engine.transaction.sweep.sweep import (
    clear_behind,
    find_written,
    look_at_paths,
    remove_written,
    schedule_sweep,
)

# Others have written upon what was to be taken back.
LATER_WRITES = "later_writes"
STARTED_ELSEWHERE = "An earlier rollback of it did not finish."


@dataclass(frozen=True, slots=True)
class RollbackInProgress:
    """A rollback to be executed, and whether another process had started it."""

    rollback: PendingRollback
    is_taken_over: bool


@dataclass(frozen=True, slots=True, repr=False)
class RolledBack(Shown):
    """An instant that is no more, and the rollback that says so."""

    instant: str
    action: Action
    rollback: str
    completed: str
    files_deleted: int
    is_taken_over: bool = False
    bytes_deleted: int = 0
    # Partitions of the metadata table that are gone until they are built again: they were built
    # after what was taken back, and had its rows.
    metadata_dropped: tuple[str, ...] = ()
    # Nothing was changed: neither rollback nor completion has a time yet.
    is_dry_run: bool = False


def begin_rollback(
    context: Context,
    held: HeldLock,
    snapshot: Snapshot,
    rollbacks: Rollbacks,
    files: InstantFiles,
    *,
    written: tuple[MarkedFile, ...] | None = None,
    reason: str = STARTED_ELSEWHERE,
) -> RollbackInProgress:
    """Take over the rollback of a cancelled or completed instant, or publish one; make it inflight.

    Steps `abort.plan` and `abort.hide`, `rollback.plan` to `rollback.hide`. `written` are the files
    to be removed, where they are known and need not be looked for; `reason` is for the ledger of a
    completed instant.

    The caller has the lock and has reloaded. A crash leaves a cancelled instant, or one with a
    pending rollback, which the next one takes over.
    """
    pending = rollbacks.pending.get(files.instant.requested)
    if pending is not None:
        in_progress = RollbackInProgress(pending, is_taken_over=True)
    else:
        in_progress = _plan_anew(context, held, snapshot, files, written)
    unpublish(context, held, snapshot, in_progress, reason=reason)
    return in_progress


def _plan_anew(
    context: Context,
    held: HeldLock,
    snapshot: Snapshot,
    files: InstantFiles,
    written: tuple[MarkedFile, ...] | None,
) -> RollbackInProgress:
    target = files.instant.requested
    ledger = read_ledger(context.storage, target)
    if files.completed is None:
        assert_may_delete(ledger, 0)
    action = files.instant.action if files.completed else files.started_as
    if written is None:
        written = written_of(context, snapshot, files, ledger)
    plan = RollbackPlan(
        instant_to_rollback=InstantReference(commit_time=target, action=action.value),
        rollback_requests=tuple(
            RollbackRequest(
                partition_path=file.partition,
                files_to_be_deleted=(context.storage.uri(file.path),),
            )
            for file in written
        ),
    )
    content = rollback.encode_plan(plan)
    published = publish_in(context, held, snapshot, Action.ROLLBACK, content, claims=False)
    planned = PendingRollback(published.instant, target, plan, context.now_ms())
    return RollbackInProgress(planned, is_taken_over=False)


def unpublish(
    context: Context,
    held: HeldLock,
    snapshot: Snapshot,
    in_progress: RollbackInProgress,
    *,
    reason: str = STARTED_ELSEWHERE,
) -> None:
    """Make the target invisible and the rollback inflight, before any file goes; under the lock.

    Steps `abort.hide` and `rollback.compare` to `rollback.hide`. From here readers do not see a
    completed target any more, and indexes that were built on it are gone. Its ledger ends when
    nothing can stand against its rollback any more. Its inflight file has to be there, as else it
    would be gone from the timeline before the metadata table has forgotten it.
    """
    targets = _targets(snapshot, in_progress)
    completed = [files for files in targets if files.completed is not None]
    ledger = read_ledger(context.storage, in_progress.rollback.target)
    if not completed:
        assert_may_delete(ledger, 0)
    held.assert_held()
    inflight = Instant(in_progress.rollback.instant, Action.ROLLBACK, State.INFLIGHT)
    create_inflight(context, snapshot.layout, inflight)
    _withdraw_overtaken(context, snapshot, in_progress, targets)
    for files in completed:
        ledger = append_withdrawn(context, ledger, files.started_as, reason=reason)
    assert_may_delete(ledger, 0)
    drop_untrue(context, snapshot, untrue_without(context, snapshot, targets))
    for files in targets:
        if files.completed is not None:
            if files.inflight is None:
                started = Instant(files.instant.requested, files.started_as, State.INFLIGHT)
                create_inflight(context, snapshot.layout, started)
            context.storage.delete(files.completed.entry.path)


def _withdraw_overtaken(
    context: Context,
    snapshot: Snapshot,
    in_progress: RollbackInProgress,
    targets: tuple[InstantFiles, ...],
) -> None:
    """Give the rollback of a completed write up, if others have built upon it meanwhile.

    They have written, or made a savepoint of it. That can only be between the look by which it was
    planned and its publication, and while the lock was lost.
    """
    written = [one.instant for one in targets if one.completed is not None]
    if not written:
        return
    now = load_for_writing(context).timeline.active
    newest = max(one.completed or "" for one in written)
    later = [one for one in now.completed() if (one.completed or "") > newest]
    later += [one for one in now.savepoints() if one.requested == in_progress.rollback.target]
    if not later:
        return
    rollback_files = now.files_of(
        Instant(in_progress.rollback.instant, Action.ROLLBACK, State.REQUESTED)
    )
    for file in reversed(list(rollback_files or ())):
        context.storage.delete(file.entry.path)
    raise Conflict(
        LATER_WRITES,
        what=f"The instant {in_progress.rollback.target} was not rolled back.",
        why=(
            f"{later[0].action.value} {later[0].requested} completed after it, while this "
            "process had lost the lock, and may build on it."
        ),
        now=f"Roll back {later[0].requested} first, or restore the table to an earlier write.",
        instant=in_progress.rollback.target,
    )


def execute_rollback(context: Context, in_progress: RollbackInProgress) -> RolledBack | None:
    """Remove what the target made, and complete its rollback; None if others completed it.

    Steps of `rollback-execution`: sweep-entry, files, lock, reload, metadata, instant-files,
    complete, unlock, tidy. The sweep entry is written first, so that no crash can lose it; it is a
    hint for later and does nothing before it is due. A crash anywhere leaves the rollback pending,
    and executing it again from the start is right.
    """
    target = in_progress.rollback.target
    began = context.ports.clock.elapsed_seconds()
    ledger = read_ledger(context.storage, target)
    written = _files_of(context, in_progress)
    places = {file.partition for file in written}
    schedule_sweep(context, target, places)
    entries = look_at_paths(context, [file.path for file in written])
    deleted = remove_written(context, ledger, 0, written)
    spent_ms = round((context.ports.clock.elapsed_seconds() - began) * 1000)
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        done = _complete(context, held, snapshot, in_progress, written, spent_ms)
    clear_behind(context, ledger, places)
    if done is None:
        return None
    completed, dropped = done
    reference = in_progress.rollback.plan.instant_to_rollback
    assert reference is not None
    return RolledBack(
        target,
        Action(reference.action),
        in_progress.rollback.instant,
        completed,
        deleted,
        in_progress.is_taken_over,
        sum(entry.size_bytes for entry in entries if entry is not None),
        dropped,
    )


def written_of(
    context: Context, snapshot: Snapshot, files: InstantFiles, ledger: Ledger
) -> tuple[MarkedFile, ...]:
    """The data files that a pending instant has made so far."""
    places = _places_without_markers(snapshot, files, ledger)
    requested = files.instant.requested
    return find_written(context.storage, requested, without_markers=places)


def _places_without_markers(
    snapshot: Snapshot, files: InstantFiles, ledger: Ledger
) -> tuple[str, ...] | None:
    """Where an instant that has left no marker may have written; None means anywhere.

    A plan that no attempt has started has not, and one that was started writes where its inputs
    are. So a plan for a few of very many partitions is cancelled without a look at all the others.
    """
    if files.started_as is Action.INDEXING:
        return ()
    if files.started_as not in TABLE_SERVICES:
        return None
    if files.inflight is None and ledger.last_claim is None:
        return ()
    return scope_of(snapshot, files).partitions or None


def _files_of(context: Context, in_progress: RollbackInProgress) -> tuple[MarkedFile, ...]:
    """What the plan names, and what was written since, or was not known when it was planned."""
    planned = _planned(in_progress.rollback)
    if not in_progress.is_taken_over:
        return tuple(sorted(planned))
    return tuple(sorted({*planned, *find_written(context.storage, in_progress.rollback.target)}))


def _planned(planned: PendingRollback) -> Iterable[MarkedFile]:
    for request in planned.plan.rollback_requests:
        if request.log_blocks_to_be_deleted:
            raise _appends_to_logs(planned)
        for address in request.files_to_be_deleted:
            # The table may have been moved since; the partition and the name stay the same.
            name = address.rpartition("/")[2]
            file = parse_file_name(name, 0)
            if file is None or file.instant != planned.target:
                reason = f"It would delete {name!r:.200}, which {planned.target} has not written."
                raise corrupt(f"the plan of rollback {planned.instant}", None, reason)
            yield MarkedFile(request.partition_path, name)


def _complete(
    context: Context,
    held: HeldLock,
    snapshot: Snapshot,
    in_progress: RollbackInProgress,
    written: tuple[MarkedFile, ...],
    spent_ms: int,
) -> tuple[str, tuple[str, ...]] | None:
    """The completion time, and what the metadata table has lost; the caller has the lock.

    Steps `rollback-execution.metadata`, `rollback-execution.instant-files` and
    `rollback-execution.complete`. None if others have completed it.
    """
    planned = in_progress.rollback
    if snapshot.pending(planned.instant) is None:
        return None
    dropped = _undo_in_metadata(context, snapshot, planned)
    held.assert_held()
    _remove_pending(context, snapshot, in_progress)
    ledger = snapshot.ledger(planned.instant)
    assert ledger.ends_in in (LedgerEnd.NONE, LedgerEnd.CLAIM)
    claimed = append_claim(context, ledger, Action.ROLLBACK, context.ports.ids.fresh())
    if not isinstance(claimed, Appended):
        return None
    content = rollback.encode(_metadata(context, planned, written, spent_ms))
    try:
        done = complete(context, held, snapshot, claimed.ledger, content).instant
    except Conflict as loss:
        if loss.code != "superseded":
            raise
        return None
    assert done.completed is not None
    return done.completed, dropped


def _undo_in_metadata(
    context: Context, snapshot: Snapshot, planned: PendingRollback
) -> tuple[str, ...]:
    """What the metadata table has lost since the target was made invisible."""
    dropped = rebuild(context, snapshot, planned.instant)
    if not snapshot.config.metadata_partitions:
        return dropped
    rollback_change(
        context.storage,
        snapshot.config,
        planned.target,
        planned.instant,
        snapshot.times,
        context.ports,
    )
    # Java sends heartbeats there as well.
    delete_standard_heartbeat(context.storage.below(METADATA_FOLDER), planned.target)
    return dropped


def _remove_pending(context: Context, snapshot: Snapshot, in_progress: RollbackInProgress) -> None:
    """The target leaves the timeline, its requested file last: without one it is no instant."""
    for files in _targets(snapshot, in_progress):
        assert files.completed is None
        for file in (files.inflight, files.requested):
            if file is not None:
                context.storage.delete(file.entry.path)


def _targets(snapshot: Snapshot, in_progress: RollbackInProgress) -> tuple[InstantFiles, ...]:
    """The files of the target; a savepoint of the same time is none of them."""
    found = []
    for instant in snapshot.timeline.active.with_time(in_progress.rollback.target):
        files = snapshot.timeline.active.files_of(instant)
        if files is not None and instant.action is not Action.SAVEPOINT:
            found.append(files)
    return tuple(found)


def _metadata(
    context: Context, planned: PendingRollback, written: tuple[MarkedFile, ...], spent_ms: int
) -> RollbackMetadata:
    reference = planned.plan.instant_to_rollback
    assert reference is not None
    partitions: dict[str, list[str]] = {}
    for file in written:
        partitions.setdefault(file.partition, []).append(context.storage.uri(file.path))
    return RollbackMetadata(
        start_rollback_time=planned.instant,
        time_taken_in_millis=spent_ms,
        total_files_deleted=len(written),
        commits_rollback=(planned.target,),
        partition_metadata={
            partition: RollbackPartition(
                partition_path=partition, success_delete_files=tuple(addresses)
            )
            for partition, addresses in partitions.items()
        },
        instants_rollback=(reference,),
    )


def _appends_to_logs(planned: PendingRollback) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_rollback_plan",
        what=f"The pending rollback {planned.instant} of {planned.target} would append to logs.",
        why=(
            "Only tables of version 6 have such rollbacks, and Lakewarden does not write "
            "those tables."
        ),
        now="Let Java Hudi finish it.",
        instant=planned.instant,
    )
