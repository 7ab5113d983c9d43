"""Restoring: the table goes back to what it was at a write, and later instants are removed.

First the obstacles are looked for. Then the later instants vanish from the timeline, the newest
first, so that a reader sees the table as of that write. Their files follow, then their changes to
the metadata table, and at last their markers and ledgers. After a crash the restore is pending,
nothing else starts meanwhile, and the next restore resumes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.formats.instant_metadata import restore as payload
from lakewarden.engine.formats.instant_metadata.restore import RestoreMetadata, RestorePlan
from lakewarden.engine.formats.instant_metadata.rollback import (
    InstantReference,
    RollbackMetadata,
    RollbackPartition,
)
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest, LakewardenError
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.metadata.reading.table import FILES
from lakewarden.engine.services.restore.checks import Obstacle, obstacles, target_of
from lakewarden.engine.services.restore.metadata import (
    being_built,
    can_forget,
    end_builds,
    forget,
    undo_folds,
)
from lakewarden.engine.services.retention.file_removal import finish_pending
from lakewarden.engine.services.retention.horizon import undone_by
from lakewarden.engine.services.savepoint.run import repair_savepoints
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.instants.instant import Action, Instant, InstantFiles, State
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.attempts.attempt import Attempt, complete
from lakewarden.engine.transaction.attempts.publish import create_inflight, publish_in, to_inflight
from lakewarden.engine.transaction.attempts.take_over import (
    pending_of,
    plan_in_hand,
    remove_torn,
    take_over,
)
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.rollback.metadata_rebuild import (
    drop,
    drop_untrue,
    rebuild,
    untrue_without,
)
from lakewarden.engine.transaction.state.context import Context, load_for_writing, reload_under_lock
from lakewarden.engine.transaction.state.ledger_end import (
    append_cancelled,
    append_withdrawn,
    scope_of,
)
from lakewarden.engine.transaction.state.markers import MarkedFile
from lakewarden.engine.transaction.state.plan_scope import PlanScope
from lakewarden.engine.transaction.sweep.sweep import (
    clean_up_instant,
    remove_written,
    schedule_sweep,
)

_REASON = "The table was restored to {}."


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Restored(Shown):
    """What a restore has come to, or would come to."""

    to: str
    # None in a dry run.
    instant: str | None = None
    completed: str | None = None
    # The instants that are no more, newest first.
    undone: tuple[str, ...] = ()
    files_deleted: int = 0
    # Partitions of the metadata table that stay away until they are built again.
    metadata_dropped: tuple[str, ...] = ()
    # What stands in the way; given by dry runs only.
    obstacles: tuple[Obstacle, ...] = ()
    # Another process had started it.
    was_pending: bool = False

    def __str__(self) -> str:
        if self.obstacles:
            return f"The table cannot be restored to {self.to}: {self.obstacles[0]}"
        if not self.undone:
            return f"No instant is later than {self.to}; there is nothing to undo."
        if self.instant is None:
            return f"A restore to {self.to} would undo {len(self.undone)} instants"
        return f"restore {self.instant} to {self.to}: {len(self.undone)} instants undone"


@dataclass(frozen=True, slots=True)
class _Undone:
    """One instant that is no more, and the files that it had made."""

    reference: InstantReference
    files: tuple[MarkedFile, ...]
    rolled_back: str


def restore(
    context: Context, instant: str, *, from_savepoint: bool = False, dry_run: bool = False
) -> Restored:
    """Take the table back to a completed write; to a savepoint by the instant it was made at.

    Without a savepoint it is possible as long as all files are there, unless one is insisted on. A
    dry run tells what stands in the way instead of raising it.
    """
    if dry_run:
        return _dry_run(context, instant, from_savepoint=from_savepoint)
    repair_savepoints(context)
    pending = _finish_pending(context)
    if pending is not None and pending.to == instant:
        return pending
    recover_failed_instants(context)
    finish_pending(context)
    attempt = _publish(context, instant, from_savepoint=from_savepoint)
    if attempt is None:
        return Restored(to=instant)
    with attempt:
        to_inflight(context, attempt)
        return _execute(context, attempt)


def _dry_run(context: Context, instant: str, *, from_savepoint: bool) -> Restored:
    snapshot = load_for_writing(context)
    target = target_of(snapshot, instant)
    there = undone_by(snapshot, target)
    undone = tuple(files.instant.requested for files in there)
    written = _written(context, frozenset(undone)) if undone else {}
    return Restored(
        to=instant,
        undone=undone,
        files_deleted=sum(len(files) for files in written.values()),
        metadata_dropped=_would_drop(context, snapshot, there),
        obstacles=obstacles(context, snapshot, target, from_savepoint=from_savepoint),
    )


def _would_drop(
    context: Context, snapshot: Snapshot, undone: Sequence[InstantFiles]
) -> tuple[str, ...]:
    """The partitions of the metadata table that would have to be built again."""
    had = snapshot.config.metadata_partitions
    if not had or not undone:
        return ()
    can_stay = can_forget(context, snapshot, undone)
    gone = untrue_without(context, snapshot, undone) if can_stay else had
    known = dict.fromkeys((*gone, *being_built(snapshot)))
    return tuple(one for one in known if one != FILES)


def _publish(context: Context, instant: str, *, from_savepoint: bool) -> Attempt | None:
    """Publish the restore; without an attempt there is nothing to be undone.

    Steps of `restore`: lock, reload, refuse, publish, unlock. A crash before `restore.publish`
    leaves nothing, after it a restore that the next one executes.
    """
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        target = target_of(snapshot, instant)
        obstacles_left = obstacles(context, snapshot, target, from_savepoint=from_savepoint)
        pending = snapshot.timeline.active.pending((Action.CLEAN, Action.ROLLBACK))
        if obstacles_left or pending:
            raise _refused(instant, obstacles_left, pending)
        undone = undone_by(snapshot, target)
        if not undone:
            return None
        plan = RestorePlan(
            instants_to_rollback=tuple(map(_reference, undone)),
            savepoint_to_restore_timestamp=instant,
        )
        content = payload.encode_plan(plan)
        done = publish_in(context, held, snapshot, Action.RESTORE, content, claims=True)
        return done.attempt


def _finish_pending(context: Context) -> Restored | None:
    """Go on with a restore that was published and left; it is always finished."""
    for one in load_for_writing(context).timeline.active.pending((Action.RESTORE,)):
        if remove_torn(context, Action.RESTORE, one.requested):
            continue
        taken = take_over(context, Action.RESTORE, one.requested)
        if taken.live is not None:
            raise Conflict(
                "instant_held",
                what=f"Restore {one.requested} was not resumed.",
                why=f"{taken.live} is running it.",
                now="Wait until it ends.",
                instant=one.requested,
            )
        if taken.attempt is not None:
            with taken.attempt as attempt:
                return replace(_execute(context, attempt), was_pending=True)
    return None


def _execute(context: Context, attempt: Attempt) -> Restored:
    """Do what a plan says, from wherever an earlier attempt has come to.

    Steps of `restore-execution`: lock, reload, overtaken, builds, ledgers, metadata-compactions,
    hide, unlock, sweep-entries, files, second-lock, second-reload, metadata, instant-files,
    complete, second-unlock, tidy.
    """
    began_ms = context.now_ms()
    plan = payload.decode_plan(*plan_in_hand(context, load_for_writing(context), attempt))
    target = plan.savepoint_to_restore_timestamp or ""
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        attempt.check_claim()
        _withdraw_overtaken(context, held, snapshot, attempt, plan)
        reason = _REASON.format(plan.savepoint_to_restore_timestamp or "")
        snapshot = end_builds(context, held, snapshot, reason)
        _unpublish(context, held, snapshot, plan)
    gone = frozenset(one.commit_time for one in plan.instants_to_rollback)
    written = _written(context, gone)
    deleted = _remove(context, attempt, written)
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        ledger = attempt.check_claim()
        undone = [
            _Undone(one, written.get(one.commit_time, ()), snapshot.times.next())
            for one in plan.instants_to_rollback
        ]
        dropped = _take_back_metadata(context, held, snapshot, attempt, plan)
        held.assert_held()
        for pending in _on_timeline(snapshot, plan):
            for file in (pending.inflight, pending.requested):
                if file is not None:
                    context.storage.delete(file.entry.path)
        metadata = _metadata(context, attempt, undone, context.now_ms() - began_ms)
        done = complete(context, held, snapshot, ledger, payload.encode(metadata))
    _tidy_up(context, attempt, plan)
    return Restored(
        to=target,
        instant=attempt.instant,
        completed=done.instant.completed,
        undone=tuple(one.commit_time for one in plan.instants_to_rollback),
        files_deleted=deleted,
        metadata_dropped=dropped,
    )


def _withdraw_overtaken(
    context: Context, held: HeldLock, snapshot: Snapshot, attempt: Attempt, plan: RestorePlan
) -> None:
    """Step `restore-execution.overtaken`: abort if an instant has started that is not in the plan.

    It started between the planning and the publication, while the lock was lost; after the
    publication every new instant is refused.
    """
    planned = {one.commit_time for one in plan.instants_to_rollback}
    target = snapshot.completed_write(plan.savepoint_to_restore_timestamp or "")
    if target is None or attempt.number > 1:
        return
    newer = [one for one in undone_by(snapshot, target) if one.instant.requested not in planned]
    if not newer:
        return
    other = newer[0].instant
    reason = f"The {other.action.value} {other.requested} started before the restore was published."
    held.assert_held()
    ledger = read_ledger(context.storage, attempt.instant)
    append_cancelled(context, ledger, Action.RESTORE, PlanScope(), reason=reason)
    files = pending_of(snapshot, Action.RESTORE, attempt.instant)
    for file in (files.inflight, files.requested) if files else ():
        if file is not None:
            context.storage.delete(file.entry.path)
    raise Conflict(
        "restore_overtaken",
        what=f"The table was not restored to {target.requested}.",
        why=f"{reason} This process had lost the lock.",
        now="Restore again to undo that instant, too.",
        instant=other.requested,
    )


def _unpublish(context: Context, held: HeldLock, snapshot: Snapshot, plan: RestorePlan) -> None:
    """Steps `restore-execution.ledgers` to `restore-execution.hide`: readers see the target."""
    target = plan.savepoint_to_restore_timestamp or ""
    there = _on_timeline(snapshot, plan)
    reason = _REASON.format(target)
    for files in there:
        ledger = read_ledger(context.storage, files.instant.requested)
        held.assert_held()
        if files.completed is None:
            scope = scope_of(snapshot, files)
            append_cancelled(context, ledger, files.started_as, scope, reason=reason)
        else:
            append_withdrawn(context, ledger, files.started_as, reason=reason)
    if snapshot.config.metadata_partitions:
        held.assert_held()
        if can_forget(context, snapshot, there) and undo_folds(context, snapshot, there):
            drop_untrue(context, snapshot, untrue_without(context, snapshot, there))
        else:
            drop(context, snapshot)
    for files in there:
        if files.completed is not None:
            if files.inflight is None:
                started = Instant(files.instant.requested, files.started_as, State.INFLIGHT)
                create_inflight(context, snapshot.layout, started)
            held.assert_held()
            context.storage.delete(files.completed.entry.path)


def _on_timeline(snapshot: Snapshot, plan: RestorePlan) -> list[InstantFiles]:
    """The instants of a plan that an earlier attempt has not removed yet, in its order."""
    found = []
    for one in plan.instants_to_rollback:
        for instant in snapshot.timeline.active.with_time(one.commit_time):
            files = snapshot.timeline.active.files_of(instant)
            if files is not None and instant.action.is_write:
                found.append(files)
    return found


def _written(context: Context, gone: frozenset[str]) -> Mapping[str, tuple[MarkedFile, ...]]:
    """The data files of some instants, by instant; found by one look at all there are."""
    found: dict[str, list[MarkedFile]] = {}
    for partition, files in StorageListing(context.storage).files().items():
        for file in files:
            if file.instant in gone:
                found.setdefault(file.instant, []).append(MarkedFile(partition, file.name))
    return {instant: tuple(sorted(files)) for instant, files in found.items()}


def _remove(
    context: Context, attempt: Attempt, written: Mapping[str, tuple[MarkedFile, ...]]
) -> int:
    """Steps `restore-execution.sweep-entries` and `restore-execution.files`, by law 1."""
    deleted = 0
    for number, instant in enumerate(sorted(written, reverse=True)):
        attempt.assert_mine()
        attempt.tell("delete", done=number, total=len(written))
        files = written[instant]
        schedule_sweep(context, instant, tuple(sorted({file.partition for file in files})))
        deleted += remove_written(context, read_ledger(context.storage, instant), 0, files)
    return deleted


def _take_back_metadata(
    context: Context, held: HeldLock, snapshot: Snapshot, attempt: Attempt, plan: RestorePlan
) -> tuple[str, ...]:
    held.assert_held()
    dropped = rebuild(context, snapshot, attempt.instant)
    if snapshot.config.metadata_partitions:
        target = plan.savepoint_to_restore_timestamp or ""
        forget(context, snapshot, target, plan.instants_to_rollback)
    return dropped


def _metadata(
    context: Context, attempt: Attempt, undone: Sequence[_Undone], taken_ms: int
) -> RestoreMetadata:
    return RestoreMetadata(
        start_restore_time=attempt.instant,
        time_taken_in_millis=taken_ms,
        instants_to_rollback=tuple(one.reference.commit_time for one in undone),
        hoodie_restore_metadata={
            one.reference.commit_time: (_rollback_of(context.storage, one),) for one in undone
        },
        restore_instant_info=tuple(one.reference for one in undone),
    )


def _rollback_of(storage: Storage, undone: _Undone) -> RollbackMetadata:
    """The rollback that an instant would have had; it has no instant of its own."""
    partitions: dict[str, list[str]] = {}
    for file in undone.files:
        # Java has no schemes here.
        address = storage.uri(file.path).removeprefix("file:")
        partitions.setdefault(file.partition, []).append(address)
    return RollbackMetadata(
        start_rollback_time=undone.rolled_back,
        total_files_deleted=len(undone.files),
        commits_rollback=(undone.reference.commit_time,),
        partition_metadata={
            partition: RollbackPartition(
                partition_path=partition, success_delete_files=tuple(addresses)
            )
            for partition, addresses in partitions.items()
        },
        instants_rollback=(undone.reference,),
    )


def _reference(files: InstantFiles) -> InstantReference:
    return InstantReference(commit_time=files.instant.requested, action=files.instant.action.value)


def _tidy_up(context: Context, attempt: Attempt, plan: RestorePlan) -> None:
    """Step `restore-execution.tidy`: it cannot fail a restore, and a clean removes what stays."""
    attempt.stop()
    try:
        for one in plan.instants_to_rollback:
            clean_up_instant(context.storage, read_ledger(context.storage, one.commit_time))
        clean_up_instant(context.storage, read_ledger(context.storage, attempt.instant))
    except LakewardenError:
        return


def _refused(
    instant: str, obstacles_left: Sequence[Obstacle], pending: Sequence[Instant]
) -> LakewardenError:
    what = f"The table was not restored to {instant}."
    if not obstacles_left:
        other = pending[0]
        return Conflict(
            "instant_held",
            what=what,
            why=f"The {other.action.value} {other.requested} has not ended.",
            now="Wait until it ends.",
            instant=other.requested,
        )
    first = obstacles_left[0]
    more = f" {len(obstacles_left) - 1} more obstacles." if len(obstacles_left) > 1 else ""
    kind = Conflict if all(one.passes for one in obstacles_left) else InvalidRequest
    return kind(
        first.code,
        what=what,
        why=f"{first.why}{more}",
        now=first.remedy,
        instant=first.instant or instant,
        obstacles=tuple(obstacles_left),
    )
