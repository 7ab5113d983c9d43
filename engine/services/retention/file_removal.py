"""Executing a clean: the files of its plan go, by any engine's plan, and the table records it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lakewarden.engine.file_groups.file_names import PARTITION_METADATA
from lakewarden.engine.file_groups.listing import data_files
from lakewarden.engine.file_groups.slices import FileSlice, file_groups
from lakewarden.engine.formats.instant_metadata import clean
from lakewarden.engine.formats.instant_metadata.clean import (
    CleanMetadata,
    CleanPartition,
    CleanPlan,
)
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.metadata.entries.changes import TableChange
from lakewarden.engine.metadata.writing.writer import write_change
from lakewarden.engine.services.retention.clean_plan import Finished, held_files
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.ledger.ledger import Ledger
from lakewarden.engine.transaction.attempts.attempt import Attempt, complete
from lakewarden.engine.transaction.attempts.take_over import plan_in_hand, remove_torn, take_over
from lakewarden.engine.transaction.state.context import Context, load_for_writing, reload_under_lock
from lakewarden.engine.transaction.state.markers import read_markers
from lakewarden.engine.transaction.sweep.sweep import clean_up_instant, delete_paths
from lakewarden.engine.write.files.write_groups import ensure_partition


def remove_empty(
    context: Context, snapshot: Snapshot, instant: str, partitions: tuple[str, ...]
) -> tuple[str, ...]:
    """Remove those of some partitions that have no data files; under the lock."""
    return tuple(one for one in partitions if one and _remove(context, snapshot, instant, one))


def _remove(context: Context, snapshot: Snapshot, instant: str, partition: str) -> bool:
    storage = context.storage
    if _has_files(storage, partition):
        return False
    for entry in storage.list(partition).files:
        if entry.name.startswith(PARTITION_METADATA):
            storage.delete(entry.path)
    if _has_files(storage, partition) or _is_marked(storage, snapshot, partition):
        ensure_partition(storage, partition, instant)
        return False
    return True


def _has_files(storage: Storage, partition: str) -> bool:
    return bool(data_files(storage.list(partition).files))


def _is_marked(storage: Storage, snapshot: Snapshot, partition: str) -> bool:
    """Whether something under way has announced a file in a partition."""
    return any(
        file.partition == partition
        for pending in snapshot.timeline.active.pending()
        for file in read_markers(storage, pending.requested) or ()
    )


# So many files are deleted side by side before the attempt looks whether it may go on.
FILES_AT_ONCE = 500

# Partition -> names of files.
Names = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class FilesToDelete:
    """What a plan wants deleted, by where it is in the table as it lies now."""

    files: Names
    partitions: tuple[str, ...]

    @property
    def paths(self) -> list[str]:
        return [_path(partition, name) for partition, names in self.files.items() for name in names]


@dataclass(frozen=True, slots=True)
class Held:
    """A pending clean that another process is running."""

    instant: str
    why: str


def finish_pending(context: Context) -> tuple[tuple[Finished, ...], Held | None]:
    """Carry out the cleans that were published and left, oldest first; up to one that is held."""
    finished: list[Finished] = []
    for instant in load_for_writing(context).timeline.active.pending((Action.CLEAN,)):
        if remove_torn(context, Action.CLEAN, instant.requested):
            continue
        taken = take_over(context, Action.CLEAN, instant.requested)
        if taken.live is not None:
            why = f"{taken.live} is running the clean {instant.requested}."
            return tuple(finished), Held(instant.requested, why)
        if taken.attempt is not None:
            with taken.attempt as attempt:
                finished.append(execute_attempt(context, load_for_writing(context), attempt))
    return tuple(finished), None


def execute_attempt(context: Context, snapshot: Snapshot, attempt: Attempt) -> Finished:
    """Carry out the clean that an attempt has in hand."""
    content, path = plan_in_hand(context, snapshot, attempt)
    return execute_clean(context, attempt, content, path)


def execute_clean(context: Context, attempt: Attempt, content: bytes, path: str) -> Finished:
    """Execute the plan of a clean, and complete it.

    Steps of `clean-execution`: check, files, lock, reload, own-ledger, partitions, metadata,
    complete, unlock, tidy. A crash anywhere leaves a pending clean, which the next one resumes.
    """
    began_ms = context.now_ms()
    plan = clean.decode_plan(content, path)
    orders = files_to_delete(plan, path)
    snapshot = load_for_writing(context)
    sizes = assert_unneeded(context, snapshot, plan, orders)
    _delete(context, attempt, orders)
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        ledger = attempt.check_claim()
        gone = remove_empty(context, snapshot, attempt.instant, orders.partitions)
        change = TableChange(
            instant=attempt.instant, deleted_files=orders.files, deleted_partitions=gone
        )
        if snapshot.config.metadata_partitions:
            held.assert_held()
            write_change(
                snapshot.metadata, snapshot.definitions, change, snapshot.times, context.ports
            )
        metadata = _metadata(context, attempt, plan, orders, gone, context.now_ms() - began_ms)
        done = complete(context, held, snapshot, ledger, clean.encode(metadata))
    _end(context, attempt, ledger)
    return Finished(
        instant=attempt.instant,
        completed=done.instant.completed or "",
        files_deleted=len(orders.paths),
        bytes_deleted=sum(sizes.values()),
        partitions=tuple(sorted(orders.files)),
        partitions_deleted=gone,
        earliest_retained=metadata.earliest_commit_to_retain or None,
        milliseconds=metadata.time_taken_in_millis,
    )


def files_to_delete(plan: CleanPlan, path: str) -> FilesToDelete:
    """What a plan of either version asks for.

    Addresses come with or without a scheme, and from where the table lay when it was planned:
    partition and name are what stays.
    """
    files: dict[str, tuple[str, ...]] = {}
    for partition, names in (plan.files_to_be_deleted_per_partition or {}).items():
        files[partition] = tuple(name.rpartition("/")[2] for name in names)
    for partition, named in plan.file_paths_to_be_deleted_per_partition.items():
        if any(file.is_bootstrap_base_file for file in named):
            raise _bootstrap(path)
        listed = (file.file_path.rpartition("/")[2] for file in named if file.file_path)
        files[partition] = tuple(dict.fromkeys((*files.get(partition, ()), *listed)))
    return FilesToDelete(files, plan.partitions_to_be_deleted)


def assert_unneeded(
    context: Context, snapshot: Snapshot, plan: CleanPlan, orders: FilesToDelete
) -> Mapping[str, int]:
    """Refuse a plan with a file that some reader may ask for; else the sizes of those there are.

    It does not go by the planner's rules, but looks at what is read now and as of the horizon, and
    at what savepoints and pending plans name.
    """
    doomed = {(partition, name) for partition, names in orders.files.items() for name in names}
    held = held_files(snapshot.timeline.active)
    for file in sorted(doomed & held.keys()):
        raise _needed(file, f"{held[file].hold.value} {held[file].instant} needs it")
    retained = plan.earliest_instant_to_retain
    views = {"a read of the newest snapshot needs it": snapshot.visibility()}
    if retained is not None:
        why = f"the table as of {retained.timestamp}, which must stay readable, needs it"
        views[why] = snapshot.visibility(retained.timestamp)
    listed = snapshot.source(use_metadata=True).files(sorted(orders.files))
    for partition, files in listed.items():
        for why, visibility in views.items():
            for group in file_groups(partition, files, visibility):
                for name in _names(group.latest_merged()):
                    if (partition, name) in doomed:
                        raise _needed((partition, name), why)
    return {
        _path(partition, file.name): file.size_bytes
        for partition, files in listed.items()
        for file in files
        if (partition, file.name) in doomed
    }


def _names(slice_: FileSlice) -> Iterator[str]:
    if slice_.base_file is not None:
        yield slice_.base_file.name
    for log in slice_.log_files:
        yield log.name


def _delete(context: Context, attempt: Attempt, orders: FilesToDelete) -> None:
    paths = orders.paths
    for start in range(0, len(paths), FILES_AT_ONCE):
        attempt.assert_mine()
        attempt.tell("delete", done=start, total=len(paths))
        delete_paths(context, paths[start : start + FILES_AT_ONCE])


def _metadata(
    context: Context,
    attempt: Attempt,
    plan: CleanPlan,
    orders: FilesToDelete,
    gone: tuple[str, ...],
    taken_ms: int,
) -> CleanMetadata:
    places = sorted({*orders.files, *gone})
    retained = plan.earliest_instant_to_retain
    return CleanMetadata(
        start_clean_time=attempt.instant,
        time_taken_in_millis=taken_ms,
        total_files_deleted=len(orders.paths),
        earliest_commit_to_retain="" if retained is None else retained.timestamp,
        last_completed_commit_timestamp=plan.last_completed_commit_timestamp,
        partition_metadata={
            place: CleanPartition(
                partition_path=place,
                policy=plan.policy,
                delete_path_patterns=orders.files.get(place, ()),
                success_delete_files=orders.files.get(place, ()),
                is_partition_deleted=place in gone,
            )
            for place in places
        },
        extra_metadata=plan.extra_metadata,
    )


def _end(context: Context, attempt: Attempt, ledger: Ledger) -> None:
    attempt.stop()
    clean_up_instant(context.storage, ledger)


def _path(partition: str, name: str) -> str:
    return f"{partition}/{name}" if partition else name


def _needed(file: tuple[str, str], why: str) -> CorruptTable:
    path = _path(*file)
    return CorruptTable(
        "unsafe_clean_plan",
        what=f"A clean would delete {path}, but {why}.",
        why="The table has changed since it was planned, or the plan is wrong.",
        now="Nothing was deleted. Cancel the clean if it has not started.",
        path=path,
    )


def _bootstrap(path: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_bootstrap",
        what=f"The clean plan {path} names files outside the table.",
        why="They belong to a bootstrapped table, which Lakewarden does not implement.",
        now="Let Java Hudi finish this clean.",
        path=path,
    )
