"""Rollback on request: the newest write is taken back as if it had never been.

What stands in the way of taking a completed write back; every refusal says what to do.
"""

from collections.abc import Iterator

from lakewarden.engine.file_groups.file_names import LogFile, parse_file_name
from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.formats.instant_metadata import compaction
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata
from lakewarden.engine.formats.instant_metadata.commit import decode as decode_commit
from lakewarden.engine.formats.instant_metadata.replace import ReplaceCommitMetadata
from lakewarden.engine.formats.instant_metadata.replace import decode as decode_replace
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.metadata.building.create import built_after
from lakewarden.engine.metadata.reading.table import load_metadata_table
from lakewarden.engine.metadata.writing.coverage import folded_partitions
from lakewarden.engine.read.query.removed_files import Past, first_missed
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.versions import INITIAL_VERSION_KEY, OLDEST
from lakewarden.engine.timeline.instants.instant import (
    COMPLETED_WRITES,
    Action,
    Instant,
    InstantFiles,
)
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.timeline.timeline import Without
from lakewarden.engine.transaction.cancel.cancel import Ending, acknowledge
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.rollback.cancelled_instant import abort
from lakewarden.engine.transaction.rollback.execution import (
    RollbackInProgress,
    RolledBack,
    begin_rollback,
    execute_rollback,
)
from lakewarden.engine.transaction.state.context import (
    TABLE_SERVICES,
    Context,
    load_for_writing,
    reload_under_lock,
)
from lakewarden.engine.transaction.state.markers import MarkedFile
from lakewarden.engine.transaction.state.plan_scope import INGESTION
from lakewarden.engine.transaction.state.rollback_plans import (
    completed_rollback_of,
    pending_rollbacks,
)
from lakewarden.engine.transaction.sweep.sweep import look_at_paths, written_in


def assert_may_be_taken_back(
    context: Context, snapshot: Snapshot, files: InstantFiles, metadata: CommitMetadata
) -> None:
    """Refuse unless the table without the write is what it was before it."""
    write = files.instant
    _refuse_later_writes(snapshot, write)
    _refuse_pending(snapshot, write)
    _refuse_savepoint(snapshot, write)
    _refuse_missing_inputs(context, snapshot, files, metadata)
    log = shared_log(snapshot, files)
    if log is not None:
        now = "Correct the rows with another write."
        raise _refused(write, "shared_logs", f"Its log {log} may hold rows of others.", now, None)
    if snapshot.config.metadata_partitions:
        _refuse_folded_metadata(context, snapshot, write)


def _refuse_later_writes(snapshot: Snapshot, write: Instant) -> None:
    assert write.completed is not None
    for other in snapshot.timeline.active.completed(COMPLETED_WRITES):
        if other.requested > write.requested or (other.completed or "") > write.completed:
            raise _refused(
                write,
                "later_writes",
                f"{other.action.value} {other.requested} completed after it and may build on it.",
                f"Roll back {other.requested} first, or restore the table to a savepoint.",
                other.requested,
            )


def _refuse_pending(snapshot: Snapshot, write: Instant) -> None:
    """Whatever is under way may have chosen its files while the write was there."""
    active = snapshot.timeline.active
    rollbacks = pending_rollbacks(active).pending
    own = rollbacks[write.requested].instant if write.requested in rollbacks else None
    for other in active.pending():
        files = active.files_of(other)
        is_older_plan = (
            files is not None
            and files.started_as in TABLE_SERVICES
            and other.requested < write.requested
        )
        # What the rollback takes out of the metadata table goes from builds of indexes, too.
        is_build = other.action is Action.INDEXING
        if other.requested != own and not (is_older_plan or is_build):
            raise _refused(
                write,
                "pending_instants",
                f"{other.action.value} {other.requested} is running and may build on it.",
                "Wait until it ends, or cancel it.",
                other.requested,
            )


def _refuse_savepoint(snapshot: Snapshot, write: Instant) -> None:
    for savepoint in snapshot.timeline.active.savepoints():
        if savepoint.requested == write.requested:
            raise _refused(
                write,
                "savepointed",
                "A savepoint protects it.",
                "Delete the savepoint first.",
                savepoint.requested,
            )


def _refuse_missing_inputs(
    context: Context, snapshot: Snapshot, files: InstantFiles, metadata: CommitMetadata
) -> None:
    """The files that held the rows before have to be there still: a clean may have been here."""
    paths = sorted({file.path for file in _inputs(snapshot, files, metadata)})
    entries = look_at_paths(context, paths)
    missing = next((path for path, e in zip(paths, entries, strict=True) if e is None), None)
    missing = missing or _missing_slice(context, snapshot, files.instant, metadata)
    if missing is not None:
        raise _refused(
            files.instant,
            "inputs_cleaned",
            f"A clean has removed {missing}, which held its rows before.",
            "Restore a savepoint, or correct the rows with another write.",
            None,
        )


def _inputs(
    snapshot: Snapshot, files: InstantFiles, metadata: CommitMetadata
) -> Iterator[MarkedFile]:
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            if stat.prev_base_file:
                yield MarkedFile(partition, stat.prev_base_file)
    is_compaction = files.started_as in (Action.COMPACTION, Action.LOG_COMPACTION)
    if is_compaction and files.requested is not None:
        content = snapshot.timeline.active.read(files.requested.instant)
        plan = compaction.decode_plan(content, files.requested.entry.path)
        for operation in plan.operations:
            for address in (operation.data_file_path, *operation.delta_file_paths):
                if address:
                    name = address.rpartition("/")[2]
                    yield MarkedFile(operation.partition_path or "", name)


def _missing_slice(
    context: Context, snapshot: Snapshot, write: Instant, metadata: CommitMetadata
) -> str | None:
    """What the table without the write would miss of the file groups that it has replaced.

    Of one whose newest slice was cleaned, older ones may be there still: a savepoint keeps them.
    """
    if not isinstance(metadata, ReplaceCommitMetadata):
        return None
    replaced = metadata.partition_to_replace_file_ids
    places = tuple(sorted(replaced))
    listed = StorageListing(context.storage).files(places)
    for partition in places:
        there = {file.file_id for file in listed[partition]}
        for file_id in replaced[partition]:
            if file_id not in there:
                return f"{partition}/{file_id}"
    without = Without(snapshot.timeline, frozenset((write.requested,)))
    past = Past.of(listed, snapshot.visibility(completions=without), places)
    missed = first_missed(snapshot, past, write.requested)
    return None if missed is None else missed.removed.path


def _refuse_folded_metadata(context: Context, snapshot: Snapshot, write: Instant) -> None:
    """As in Java: what a compaction of the metadata table has folded cannot be taken out again.

    One that is of nothing but partitions that go with the write is no obstacle.
    """
    state = load_metadata_table(context.storage, snapshot.config)
    deltacommit = state.deltacommit(write.requested)
    completed = None if deltacommit is None else deltacommit.instant.completed
    if completed is None or write.completed is None:
        return
    going = frozenset(built_after(state, snapshot.config, write.completed))
    for files in state.timeline.active.files:
        is_fold = files.started_as in TABLE_SERVICES or files.instant.action is Action.COMMIT
        is_later = is_fold and files.instant.requested > completed
        if is_later and not folded_partitions(state, files) <= going:
            raise _refused(
                write,
                "metadata_compacted",
                f"The metadata table was compacted at {files.instant.requested}, after it.",
                "Restore a savepoint. Or drop the metadata table, roll back, and rebuild it.",
                files.instant.requested,
            )


def _refused(write: Instant, code: str, why: str, now: str, other: str | None) -> InvalidRequest:
    return InvalidRequest(
        code,
        what=f"{write.action.value} {write.requested} was not rolled back.",
        why=why,
        now=now,
        instant=write.requested,
        other=other,
    )


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


def shared_log(snapshot: Snapshot, files: InstantFiles) -> str | None:
    """A log that a write has added to when the table had version 6: others may have, too."""
    began = snapshot.config.properties.get(INITIAL_VERSION_KEY, "")
    if began != str(OLDEST) or files.completed is None or not files.instant.action.is_write:
        return None
    for stats in metadata_of(snapshot, files).partition_to_write_stats.values():
        for stat in stats:
            log = parse_file_name((stat.path or "").rpartition("/")[2], 0)
            if isinstance(log, LogFile) and log.instant != files.instant.requested:
                return log.name
    return None


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
