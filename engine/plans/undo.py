"""Undoing: the rollback of one instant, begun by us or by Java, and finished by whoever finds it.

The end is an ordinary rollback that every Hudi reader and writer understands. One instant has one
rollback, which is taken over and never planned again.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from lakewarden.engine.formats.payloads import rollback
from lakewarden.engine.formats.payloads.rollback import (
    InstantReference,
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    RollbackRequest,
)
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest, corrupt
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.metadata.writer import rollback_change
from lakewarden.engine.plans.cancelling import append_withdrawn, scope_of
from lakewarden.engine.plans.claims import append_claim
from lakewarden.engine.plans.completion import complete
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.markers import MarkedFile
from lakewarden.engine.plans.metadata_rebuild import drop_untrue, rebuild, untrue_without
from lakewarden.engine.plans.moment import look, reload
from lakewarden.engine.plans.publish import create_inflight, publish_in
from lakewarden.engine.plans.rollback_plans import PendingRollback, Rollbacks
from lakewarden.engine.plans.service import TABLE_SERVICES
from lakewarden.engine.plans.sweep import clear_behind, schedule_sweep
from lakewarden.engine.plans.written_files import find_written, look_at_paths, remove_written
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import METADATA_FOLDER
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.beats import delete_standard_beat
from lakewarden.engine.timeline.instant import Action, Instant, State
from lakewarden.engine.timeline.ledger import Appended, Ledger, assert_may_delete, read_ledger
from lakewarden.engine.timeline.state import LedgerEnd
from lakewarden.engine.view.file_names import parse_file_name

# Others have written upon what was to be taken back.
LATER_WRITES = "later_writes"
BEGUN_ELSEWHERE = "An earlier rollback of it did not finish."


@dataclass(frozen=True, slots=True)
class Undoing:
    """A rollback to be carried out, and whether somebody else had begun with it."""

    rollback: PendingRollback
    is_taken_over: bool


@dataclass(frozen=True, slots=True)
class RolledBack:
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


def begin_undoing(
    context: Context,
    held: HeldLock,
    moment: Snapshot,
    rollbacks: Rollbacks,
    files: InstantFiles,
    *,
    written: tuple[MarkedFile, ...] | None = None,
    reason: str = BEGUN_ELSEWHERE,
) -> Undoing:
    """Take over the rollback of a cancelled or completed instant, or publish one; make it inflight.

    Steps `abort.plan` and `abort.hide`, `rollback.plan` to `rollback.hide`. `written` are the files
    to be removed, where they are known and need not be looked for; `reason` is for the ledger of a
    completed instant.

    The caller has the lock and has reloaded. A crash leaves a cancelled instant, or one with a
    pending rollback, which the next one takes over.
    """
    pending = rollbacks.pending.get(files.instant.requested)
    if pending is not None:
        undoing = Undoing(pending, is_taken_over=True)
    else:
        undoing = _planned_anew(context, held, moment, files, written)
    unpublish(context, held, moment, undoing, reason=reason)
    return undoing


def _planned_anew(
    context: Context,
    held: HeldLock,
    moment: Snapshot,
    files: InstantFiles,
    written: tuple[MarkedFile, ...] | None,
) -> Undoing:
    target = files.instant.requested
    ledger = read_ledger(context.storage, target)
    if files.completed is None:
        assert_may_delete(ledger, 0)
    action = files.instant.action if files.completed else files.begun_as
    if written is None:
        written = written_of(context, moment, files, ledger)
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
    published = publish_in(context, held, moment, Action.ROLLBACK, content, claims=False)
    planned = PendingRollback(published.instant, target, plan, context.now_ms())
    return Undoing(planned, is_taken_over=False)


def unpublish(
    context: Context,
    held: HeldLock,
    moment: Snapshot,
    undoing: Undoing,
    *,
    reason: str = BEGUN_ELSEWHERE,
) -> None:
    """Make the target invisible and the rollback inflight, before any file goes; under the lock.

    Steps `abort.hide` and `rollback.compare` to `rollback.hide`. From here readers do not see a
    completed target any more, and indexes that were built on it are gone. Its ledger ends when
    nothing can stand against its rollback any more. Its inflight file has to be there, as else it
    would be gone from the timeline before the metadata table has forgotten it.
    """
    targets = _targets(moment, undoing)
    completed = [files for files in targets if files.completed is not None]
    ledger = read_ledger(context.storage, undoing.rollback.target)
    if not completed:
        assert_may_delete(ledger, 0)
    held.assert_held()
    inflight = Instant(undoing.rollback.instant, Action.ROLLBACK, State.INFLIGHT)
    create_inflight(context, moment.layout, inflight)
    _withdraw_overtaken(context, moment, undoing, targets)
    for files in completed:
        ledger = append_withdrawn(context, ledger, files.begun_as, reason=reason)
    assert_may_delete(ledger, 0)
    drop_untrue(context, moment, untrue_without(context, moment, targets))
    for files in targets:
        if files.completed is not None:
            if files.inflight is None:
                begun = Instant(files.instant.requested, files.begun_as, State.INFLIGHT)
                create_inflight(context, moment.layout, begun)
            context.storage.delete(files.completed.entry.path)


def _withdraw_overtaken(
    context: Context, moment: Snapshot, undoing: Undoing, targets: tuple[InstantFiles, ...]
) -> None:
    """Give the rollback of a completed write up, if others have built upon it meanwhile.

    They have written, or made a savepoint of it. That can only be between the look by which it was
    planned and its publication, and while the lock was lost.
    """
    written = [one.instant for one in targets if one.completed is not None]
    if not written:
        return
    now = look(context).timeline.active
    newest = max(one.completed or "" for one in written)
    later = [one for one in now.completed() if (one.completed or "") > newest]
    later += [one for one in now.savepoints() if one.requested == undoing.rollback.target]
    if not later:
        return
    rollback_files = now.files_of(
        Instant(undoing.rollback.instant, Action.ROLLBACK, State.REQUESTED)
    )
    for file in reversed(list(rollback_files or ())):
        context.storage.delete(file.entry.path)
    raise Conflict(
        LATER_WRITES,
        what=f"The instant {undoing.rollback.target} was not rolled back.",
        why=(
            f"{later[0].action.value} {later[0].requested} completed after it, while this "
            "process had lost the lock, and may build on it."
        ),
        now=f"Roll back {later[0].requested} first, or restore the table to an earlier write.",
        instant=undoing.rollback.target,
    )


def carry_out(context: Context, undoing: Undoing) -> RolledBack | None:
    """Remove what the target made, and complete its rollback; None if others completed it.

    Steps of `rollback-execution`: sweep-entry, files, lock, reload, metadata, instant-files,
    complete, unlock, tidy. The sweep entry is written first, so that no crash can lose it; it is a
    hint for later and does nothing before it is due. A crash anywhere leaves the rollback pending,
    and carrying it out again from the start is right.
    """
    target = undoing.rollback.target
    began = context.ports.clock.elapsed_seconds()
    ledger = read_ledger(context.storage, target)
    written = _files_of(context, undoing)
    places = {file.partition for file in written}
    schedule_sweep(context, target, places)
    entries = look_at_paths(context, [file.path for file in written])
    deleted = remove_written(context, ledger, 0, written)
    spent_ms = round((context.ports.clock.elapsed_seconds() - began) * 1000)
    with context.lock.hold() as held:
        moment = reload(context)
        done = _completed(context, held, moment, undoing, written, spent_ms)
    clear_behind(context, ledger, places)
    if done is None:
        return None
    completed, dropped = done
    reference = undoing.rollback.plan.instant_to_rollback
    assert reference is not None
    return RolledBack(
        target,
        Action(reference.action),
        undoing.rollback.instant,
        completed,
        deleted,
        undoing.is_taken_over,
        sum(entry.size_bytes for entry in entries if entry is not None),
        dropped,
    )


def written_of(
    context: Context, moment: Snapshot, files: InstantFiles, ledger: Ledger
) -> tuple[MarkedFile, ...]:
    """The data files that a pending instant has made so far."""
    places = _places_without_markers(moment, files, ledger)
    requested = files.instant.requested
    return find_written(context.storage, requested, without_markers=places)


def _places_without_markers(
    moment: Snapshot, files: InstantFiles, ledger: Ledger
) -> tuple[str, ...] | None:
    """Where an instant that has left no marker may have written; None means anywhere.

    A plan that nobody has begun with has not, and one that was begun writes where its inputs are.
    So a plan for a few of very many partitions is cancelled without a look at all the others.
    """
    if files.begun_as not in TABLE_SERVICES:
        return None
    if files.inflight is None and ledger.last_claim is None:
        return ()
    return scope_of(moment, files).partitions or None


def _files_of(context: Context, undoing: Undoing) -> tuple[MarkedFile, ...]:
    """What the plan names, and what was written since, or was not known to whoever planned."""
    planned = _planned(undoing.rollback)
    if not undoing.is_taken_over:
        return tuple(sorted(planned))
    return tuple(sorted({*planned, *find_written(context.storage, undoing.rollback.target)}))


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


def _completed(
    context: Context,
    held: HeldLock,
    moment: Snapshot,
    undoing: Undoing,
    written: tuple[MarkedFile, ...],
    spent_ms: int,
) -> tuple[str, tuple[str, ...]] | None:
    """The completion time, and what the metadata table has lost; the caller has the lock.

    Steps `rollback-execution.metadata`, `rollback-execution.instant-files` and
    `rollback-execution.complete`. None if others have completed it.
    """
    planned = undoing.rollback
    if moment.pending(planned.instant) is None:
        return None
    dropped = _undo_in_metadata(context, moment, planned)
    held.assert_held()
    _remove_pending(context, moment, undoing)
    ledger = moment.ledger(planned.instant)
    assert ledger.ends_in in (LedgerEnd.NONE, LedgerEnd.CLAIM)
    claimed = append_claim(context, ledger, Action.ROLLBACK, context.ports.ids.fresh())
    if not isinstance(claimed, Appended):
        return None
    content = rollback.encode(_metadata(context, planned, written, spent_ms))
    try:
        done = complete(context, held, moment, claimed.ledger, content).instant
    except Conflict as loss:
        if loss.code != "superseded":
            raise
        return None
    assert done.completed is not None
    return done.completed, dropped


def _undo_in_metadata(
    context: Context, moment: Snapshot, planned: PendingRollback
) -> tuple[str, ...]:
    """What the metadata table has lost since the target was made invisible."""
    dropped = rebuild(context, moment, planned.instant)
    if not moment.config.metadata_partitions:
        return dropped
    rollback_change(
        context.storage,
        moment.config,
        planned.target,
        planned.instant,
        moment.times,
        context.ports,
    )
    # Java gives signs of life there as well.
    delete_standard_beat(context.storage.below(METADATA_FOLDER), planned.target)
    return dropped


def _remove_pending(context: Context, moment: Snapshot, undoing: Undoing) -> None:
    """The target leaves the timeline, its requested file last: without one it is no instant."""
    for files in _targets(moment, undoing):
        assert files.completed is None
        for file in (files.inflight, files.requested):
            if file is not None:
                context.storage.delete(file.entry.path)


def _targets(moment: Snapshot, undoing: Undoing) -> tuple[InstantFiles, ...]:
    """The files of the target; a savepoint of the same time is none of them."""
    found = []
    for instant in moment.timeline.active.with_time(undoing.rollback.target):
        files = moment.timeline.active.files_of(instant)
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
