"""What stands in the way of taking a completed write back; every refusal says what to do."""

from collections.abc import Iterator

from lakewarden.engine.formats.payloads import compaction
from lakewarden.engine.formats.payloads.commit import CommitMetadata
from lakewarden.engine.formats.payloads.replace import ReplaceCommitMetadata
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.table import load_metadata_table
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.markers import MarkedFile
from lakewarden.engine.plans.rollback_plans import pending_rollbacks
from lakewarden.engine.plans.service import TABLE_SERVICES
from lakewarden.engine.plans.written_files import look_at_paths
from lakewarden.engine.read.removed import Past, first_missed
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.instant import COMPLETED_WRITES, Action, Instant
from lakewarden.engine.timeline.without import Without
from lakewarden.engine.view.listing import StorageListing


def assert_may_be_taken_back(
    context: Context, moment: Snapshot, files: InstantFiles, metadata: CommitMetadata
) -> None:
    """Refuse unless the table without the write is what it was before it."""
    write = files.instant
    _refuse_later_writes(moment, write)
    _refuse_pending(moment, write)
    _refuse_savepoint(moment, write)
    _refuse_missing_inputs(context, moment, files, metadata)
    if moment.config.metadata_partitions:
        _refuse_folded_metadata(context, moment, write)


def _refuse_later_writes(moment: Snapshot, write: Instant) -> None:
    assert write.completed is not None
    for other in moment.timeline.active.completed(COMPLETED_WRITES):
        if other.requested > write.requested or (other.completed or "") > write.completed:
            raise _refused(
                write,
                "later_writes",
                f"{other.action.value} {other.requested} completed after it and may build on it.",
                f"Roll back {other.requested} first, or restore the table to a savepoint.",
                other.requested,
            )


def _refuse_pending(moment: Snapshot, write: Instant) -> None:
    """Whatever is under way may have chosen its files while the write was there."""
    active = moment.timeline.active
    rollbacks = pending_rollbacks(active).pending
    own = rollbacks[write.requested].instant if write.requested in rollbacks else None
    for other in active.pending():
        files = active.files_of(other)
        is_older_plan = (
            files is not None
            and files.begun_as in TABLE_SERVICES
            and other.requested < write.requested
        )
        if other.requested != own and not is_older_plan:
            raise _refused(
                write,
                "pending_instants",
                f"{other.action.value} {other.requested} is running and may build on it.",
                "Wait until it ends, or cancel it.",
                other.requested,
            )


def _refuse_savepoint(moment: Snapshot, write: Instant) -> None:
    for savepoint in moment.timeline.active.savepoints():
        if savepoint.requested == write.requested:
            raise _refused(
                write,
                "savepointed",
                "A savepoint protects it.",
                "Delete the savepoint first.",
                savepoint.requested,
            )


def _refuse_missing_inputs(
    context: Context, moment: Snapshot, files: InstantFiles, metadata: CommitMetadata
) -> None:
    """The files that held the rows before have to be there still: a clean may have been here."""
    paths = sorted({file.path for file in _inputs(moment, files, metadata)})
    entries = look_at_paths(context, paths)
    missing = next((path for path, e in zip(paths, entries, strict=True) if e is None), None)
    missing = missing or _missing_slice(context, moment, files.instant, metadata)
    if missing is not None:
        raise _refused(
            files.instant,
            "inputs_cleaned",
            f"A clean has removed {missing}, which held its rows before.",
            "Restore a savepoint, or correct the rows with another write.",
            None,
        )


def _inputs(
    moment: Snapshot, files: InstantFiles, metadata: CommitMetadata
) -> Iterator[MarkedFile]:
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            if stat.prev_base_file:
                yield MarkedFile(partition, stat.prev_base_file)
    is_compaction = files.begun_as in (Action.COMPACTION, Action.LOG_COMPACTION)
    if is_compaction and files.requested is not None:
        content = moment.timeline.active.read(files.requested.instant)
        plan = compaction.decode_plan(content, files.requested.entry.path)
        for operation in plan.operations:
            for address in (operation.data_file_path, *operation.delta_file_paths):
                if address:
                    name = address.rpartition("/")[2]
                    yield MarkedFile(operation.partition_path or "", name)


def _missing_slice(
    context: Context, moment: Snapshot, write: Instant, metadata: CommitMetadata
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
    without = Without(moment.timeline, frozenset((write.requested,)))
    past = Past.of(listed, moment.visibility(completions=without), places)
    missed = first_missed(moment, past, write.requested)
    return None if missed is None else missed.removed.path


def _refuse_folded_metadata(context: Context, moment: Snapshot, write: Instant) -> None:
    """As in Java: what a compaction of the metadata table has folded cannot be taken out again."""
    state = load_metadata_table(context.storage, moment.config)
    deltacommit = state.deltacommit(write.requested)
    completed = None if deltacommit is None else deltacommit.instant.completed
    if completed is None:
        return
    for files in state.timeline.active.files:
        is_fold = files.begun_as in TABLE_SERVICES or files.instant.action is Action.COMMIT
        if is_fold and files.instant.requested > completed:
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
