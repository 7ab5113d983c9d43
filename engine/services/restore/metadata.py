"""The metadata table in a restore: what the undone instants wrote to it is taken out again.

Each of them wrote a deltacommit of its own, with files of its own; without these the table is what
it was. A compaction that has folded them into base files is undone first, which changes nothing of
what readers see. Where the folded files are gone, the table has to be dropped and built anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lakewarden.engine.formats.instant_metadata import compaction, restore
from lakewarden.engine.formats.instant_metadata.binding import TORN_PLAN
from lakewarden.engine.formats.instant_metadata.restore import RestoreMetadata, RestorePlan
from lakewarden.engine.formats.instant_metadata.rollback import (
    InstantReference,
    RollbackMetadata,
    RollbackPartition,
)
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.metadata.reading.table import MetadataTable, load_metadata_table
from lakewarden.engine.metadata.writing.builds import planned_partitions
from lakewarden.engine.metadata.writing.deltacommit import find_written, withdraw_deltacommit
from lakewarden.engine.metadata.writing.instants import begin, complete
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action, InstantFiles
from lakewarden.engine.transaction.rollback.ended_builds import end_build
from lakewarden.engine.transaction.rollback.metadata_rebuild import remember_dropped
from lakewarden.engine.transaction.state.context import Context, reload_under_lock
from lakewarden.engine.transaction.state.ledger_end import append_cancelled
from lakewarden.engine.transaction.state.plan_scope import PlanScope

_FOLDS = frozenset({Action.COMPACTION, Action.LOG_COMPACTION, Action.COMMIT})


@dataclass(frozen=True, slots=True)
class _Reported:
    """One instant's deltacommit and the files it made."""

    instant: str
    rolled_back: str
    files: tuple[tuple[str, tuple[str, ...]], ...]


def pending_builds(snapshot: Snapshot) -> tuple[InstantFiles, ...]:
    """The instants of index builds that have not ended."""
    active = snapshot.timeline.active
    found = map(active.files_of, active.pending((Action.INDEXING,)))
    return tuple(files for files in found if files is not None)


def being_built(snapshot: Snapshot) -> tuple[str, ...]:
    """The partitions that pending builds make, and that are not ready."""
    active, ready = snapshot.timeline.active, snapshot.config.metadata_partitions
    builds = pending_builds(snapshot)
    planned = {one for files in builds for one in planned_partitions(active, files)}
    return tuple(sorted(planned - set(ready)))


def end_builds(context: Context, held: HeldLock, snapshot: Snapshot, reason: str) -> Snapshot:
    """Step `restore-execution.builds`: what reads the instants that go ends. The table then.

    A builder that is alive finds its ledger ended under its next hold of the lock.
    """
    builds = pending_builds(snapshot)
    if not builds:
        return snapshot
    remember_dropped(context, snapshot, being_built(snapshot))
    for files in builds:
        held.assert_held()
        ledger = snapshot.ledger(files.instant.requested)
        append_cancelled(context, ledger, Action.INDEXING, PlanScope(), reason=reason)
        end_build(context, held, snapshot, files)
    return reload_under_lock(context)


def can_forget(context: Context, snapshot: Snapshot, instants: Sequence[InstantFiles]) -> bool:
    """Whether the metadata table can be taken back to what it was before some instants."""
    state = load_metadata_table(context.storage, snapshot.config)
    for files in instants:
        # It was there before the metadata table, or its deltacommit is archived.
        if files.completed is not None and state.deltacommit(files.instant.requested) is None:
            return False
    return _can_undo_all(state, _folds(state, instants))


def undo_folds(context: Context, snapshot: Snapshot, instants: Sequence[InstantFiles]) -> bool:
    """Undo compactions since some instants; under the lock, while the instants are completed.

    The newest goes first. Its base files are not seen any more once it is not completed, and what
    they were made of is read in their place; a crash leaves a compaction that is pending. False if
    a clean has been quicker, for which it is looked once they are not completed any more: one that
    is published later sees that what it would delete is needed again.
    """
    state = load_metadata_table(context.storage, snapshot.config)
    folds = sorted(_folds(state, instants), key=lambda one: one.instant.requested, reverse=True)
    if not folds:
        return True
    for fold in folds:
        if fold.completed is not None:
            state.storage.delete(fold.completed.entry.path)
    if not _can_undo_all(state.again(), folds):
        return False
    for fold in folds:
        for partition in state.partitions():
            for file in state.files(partition):
                if file.instant == fold.instant.requested:
                    state.storage.delete(f"{partition}/{file.name}")
        for rest in (fold.inflight, fold.requested):
            if rest is not None:
                state.storage.delete(rest.entry.path)
    return True


def forget(
    context: Context, snapshot: Snapshot, target: str, instants: Sequence[InstantReference]
) -> None:
    """Take out what instants of the data table wrote; under the lock, and safe to repeat.

    Steps of `metadata-restore`: begin, deltacommits, complete. The instants are pending on the data
    table, so that readers pass over what is left of them.
    """
    state = load_metadata_table(context.storage, snapshot.config)
    snapshot.times.move_past(state.timeline.active.newest_time())
    there = [one for one in instants if state.deltacommit(one.commit_time) is not None]
    started = state.timeline.active.pending((Action.RESTORE,))
    if not there and not started:
        return
    own = started[0].requested if started else snapshot.times.next()
    references = tuple(
        InstantReference(commit_time=one.commit_time, action=Action.DELTA_COMMIT.value)
        for one in there
    )
    plan = RestorePlan(instants_to_rollback=references, savepoint_to_restore_timestamp=target)
    began_ms = context.now_ms()
    begin(state, own, Action.RESTORE, restore.encode_plan(plan))
    reported = [_withdrawn(state, one, snapshot) for one in references]
    done = RestoreMetadata(
        start_restore_time=own,
        time_taken_in_millis=context.now_ms() - began_ms,
        instants_to_rollback=tuple(one.commit_time for one in references),
        hoodie_restore_metadata={one.instant: (_rollback_of(one),) for one in reported},
        restore_instant_info=references,
    )
    complete(state, own, Action.RESTORE, restore.encode(done))


def _withdrawn(state: MetadataTable, reference: InstantReference, snapshot: Snapshot) -> _Reported:
    files = find_written(state, reference.commit_time)
    reported = _Reported(reference.commit_time, snapshot.times.next(), tuple(files.items()))
    withdraw_deltacommit(state, reference.commit_time)
    return reported


def _rollback_of(reported: _Reported) -> RollbackMetadata:
    return RollbackMetadata(
        start_rollback_time=reported.rolled_back,
        total_files_deleted=sum(len(names) for _, names in reported.files),
        commits_rollback=(reported.instant,),
        partition_metadata={
            partition: RollbackPartition(
                partition_path=partition,
                success_delete_files=tuple(f"{partition}/{name}" for name in names),
            )
            for partition, names in reported.files
        },
        instants_rollback=(
            InstantReference(commit_time=reported.instant, action=Action.DELTA_COMMIT.value),
        ),
    )


def _folds(state: MetadataTable, instants: Sequence[InstantFiles]) -> list[InstantFiles]:
    """The compactions that hold what one of the instants wrote, or are going to."""
    reported = (state.deltacommit(files.instant.requested) for files in instants)
    firsts = [one.instant.completed for one in reported if one and one.instant.completed]
    first = min(firsts, default=None)
    return [
        files
        for files in state.timeline.active.files
        if files.started_as in _FOLDS and first is not None and files.instant.requested > first
    ]


def _can_undo_all(state: MetadataTable, folds: Sequence[InstantFiles]) -> bool:
    # A pending clean is about to delete what was folded.
    is_cleaned = bool(folds) and bool(state.timeline.active.pending((Action.CLEAN,)))
    return not is_cleaned and all(_can_undo(state, fold) for fold in folds)


def _can_undo(state: MetadataTable, fold: InstantFiles) -> bool:
    """Whether all that went into a compaction is still there."""
    if fold.requested is None:
        return False
    path = fold.requested.entry.path
    try:
        plan = compaction.decode_plan(state.storage.read(path), path)
    except CorruptTable as error:
        if error.code != TORN_PLAN:
            raise
        return True
    there: dict[str, set[str]] = {}
    for operation in plan.operations:
        partition = operation.partition_path or ""
        if partition not in there:
            there[partition] = {file.name for file in state.files(partition)}
        for address in (operation.data_file_path, *operation.delta_file_paths):
            if address and address.rpartition("/")[2] not in there[partition]:
                return False
    return True
