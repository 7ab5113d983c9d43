"""Savepoints: the files of a moment that no clean may delete, so that it stays readable.

A savepoint is made at a completed write and has its requested time. The table can be restored to
it, whatever is written, cleaned and archived later.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.avro.container import is_whole_container
from lakewarden.engine.formats.instant_metadata import clean as clean_payload
from lakewarden.engine.formats.instant_metadata import savepoint as payload
from lakewarden.engine.formats.instant_metadata.savepoint import (
    SavepointMetadata,
    SavepointPartition,
)
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest, Unsettled
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.read.query.removed_files import Past, first_missed
from lakewarden.engine.services.retention.file_removal import files_to_delete
from lakewarden.engine.services.retention.horizon import all_files, undone_by, visibility_without
from lakewarden.engine.snapshot import Snapshot, retrying_view
from lakewarden.engine.storage.port import Unknown
from lakewarden.engine.timeline.instants.instant import Action, Instant, State, create_instant
from lakewarden.engine.timeline.removals import may_have_removed
from lakewarden.engine.timeline.timeline import ActiveTimeline
from lakewarden.engine.transaction.attempts.publish import create_inflight
from lakewarden.engine.transaction.state.context import (
    Context,
    load_for_display,
    load_for_writing,
    reload_under_lock,
)
from lakewarden.engine.transaction.state.rollback_plans import pending_rollbacks


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Savepoint(Shown):
    """A savepoint on the timeline."""

    instant: str
    completed: str
    user: str = ""
    comment: str = ""
    saved_at_ms: int = 0
    files: int = 0
    partitions: int = 0
    # It had been made before; nothing was changed.
    was_there: bool = False
    is_dry_run: bool = False

    def __str__(self) -> str:
        comment = f": {self.comment}" if self.comment else ""
        return (
            f"savepoint {self.instant}, {self.files} files in {self.partitions} partitions{comment}"
        )


def savepoint(
    context: Context,
    instant: str | None = None,
    *,
    user: str = "",
    comment: str = "",
    dry_run: bool = False,
) -> Savepoint:
    """Protect the files of the table as it was at a write, the newest one if none is named.

    A dry run refuses what would be refused, and tells what would be kept.

    Steps of `savepoint`: lock, reload, refuse, inflight, completed, compare, unlock. A crash before
    `savepoint.completed` leaves no savepoint; the next one that has the lock removes what there is.
    What removes files looks for savepoints when it is on the timeline itself, so that one of the
    two always sees the other.
    """
    if dry_run:
        return _dry_run(context, instant, user, comment)
    with context.lock.hold() as held:
        snapshot = _repair(context, held, reload_under_lock(context))
        target = _target(snapshot, instant)
        there = _completed_at(snapshot.timeline.active, target.requested)
        if there is not None:
            return _value(snapshot.timeline.active, there, was_there=True)
        metadata = _metadata(context, snapshot, target, user, comment)
        _refuse_doomed(context, snapshot, target, metadata)
        _refuse_rolling_back(snapshot, target)
        done = Instant(target.requested, Action.SAVEPOINT, State.COMPLETED, snapshot.times.next())
        held.assert_held()
        started = Instant(target.requested, Action.SAVEPOINT, State.INFLIGHT)
        create_inflight(context, snapshot.layout, started)
        answer = create_instant(context.storage, snapshot.layout, done, payload.encode(metadata))
        if isinstance(answer, Unknown):
            raise _unsettled(target, answer.cause)
        _withdraw_overtaken(context, snapshot, target, metadata)
        return _of(done, metadata)


def _withdraw_overtaken(
    context: Context, snapshot: Snapshot, target: Instant, metadata: SavepointMetadata
) -> None:
    """Step `savepoint.compare`: give up a savepoint whose files were removed meanwhile."""
    now = load_for_writing(context)
    if not may_have_removed(snapshot.timeline.active, now.timeline.active):
        return
    try:
        _refuse_doomed(context, now, target, metadata)
        _refuse_rolling_back(now, target)
        _refuse_gone(now, target, metadata)
    except Conflict:
        _remove(context, now.timeline.active, target)
        raise


def _refuse_gone(snapshot: Snapshot, target: Instant, metadata: SavepointMetadata) -> None:
    there = {
        (partition, file.name) for partition, files in all_files(snapshot).items() for file in files
    }
    named = {
        (partition, name)
        for partition, listed in metadata.partition_metadata.items()
        for name in listed.savepoint_data_file
    }
    if snapshot.completed_write(target.requested) is None or not named <= there:
        raise Conflict(
            "savepoint_overtaken",
            what=f"No savepoint was made at {target.requested}.",
            why="Files of it were removed meanwhile, since the lock was lost.",
            now="Choose a later instant.",
            instant=target.requested,
        )


def _refuse_rolling_back(snapshot: Snapshot, target: Instant) -> None:
    found = pending_rollbacks(snapshot.timeline.active).pending.get(target.requested)
    if found is not None:
        raise Conflict(
            "being_rolled_back",
            what=f"No savepoint was made at {target.requested}.",
            why=f"The rollback {found.instant} is undoing it.",
            now="Choose another instant.",
            instant=target.requested,
            rollback=found.instant,
        )


def _remove(context: Context, active: ActiveTimeline, target: Instant) -> None:
    """The files of the savepoint at a write, the completed one first."""
    for files in active.files:
        if files.instant.action is Action.SAVEPOINT and files.instant.requested == target.requested:
            for file in reversed(list(files)):
                context.storage.delete(file.entry.path)


def _dry_run(context: Context, instant: str | None, user: str, comment: str) -> Savepoint:
    """What would be kept, as things stand without the lock."""
    snapshot = load_for_writing(context)
    target = _target(snapshot, instant)
    there = _completed_at(snapshot.timeline.active, target.requested)
    if there is not None and is_whole(snapshot.timeline.active, there):
        found = _value(snapshot.timeline.active, there, was_there=True)
        return replace(found, is_dry_run=True)
    metadata = _metadata(context, snapshot, target, user, comment)
    _refuse_doomed(context, snapshot, target, metadata)
    dry_run_result = Instant(target.requested, Action.SAVEPOINT, State.REQUESTED)
    return replace(_of(dry_run_result, metadata), is_dry_run=True)


def delete_savepoint(context: Context, instant: str, *, dry_run: bool = False) -> Savepoint:
    """Let a savepoint go: what it has kept is removed by the cleans to come.

    Steps of `savepoint-removal`: lock, reload, completed, inflight, unlock. The completed file goes
    first; from then on there is no savepoint. A dry run leaves it.
    """
    if dry_run:
        return _to_be_deleted(context, instant)
    with context.lock.hold() as held:
        snapshot = _repair(context, held, reload_under_lock(context))
        there = _completed_at(snapshot.timeline.active, instant)
        if there is None:
            raise _unknown(instant)
        value = _value(snapshot.timeline.active, there)
        held.assert_held()
        _remove(context, snapshot.timeline.active, there)
        return value


def _to_be_deleted(context: Context, instant: str) -> Savepoint:
    active = load_for_writing(context).timeline.active
    there = _completed_at(active, instant)
    if there is None or not is_whole(active, there):
        raise _unknown(instant)
    return replace(_value(active, there), is_dry_run=True)


def list_savepoints(context: Context) -> tuple[Savepoint, ...]:
    """The savepoints there are, oldest first."""

    def those_of(snapshot: Snapshot) -> tuple[Savepoint, ...]:
        active = snapshot.timeline.active
        return tuple(_value(active, one) for one in active.savepoints() if is_whole(active, one))

    return retrying_view(partial(load_for_display, context), those_of)


def is_whole(active: ActiveTimeline, instant: Instant) -> bool:
    """Whether a savepoint was published; one that a crash cut short was not."""
    return is_whole_container(active.read(instant))


def repair_savepoints(context: Context) -> None:
    """Remove what is left of savepoints whose making, or removal, ended in the middle."""
    active = load_for_writing(context).timeline.active
    if _unfinished(active):
        with context.lock.hold() as held:
            _repair(context, held, reload_under_lock(context))


def _repair(context: Context, held: HeldLock, snapshot: Snapshot) -> Snapshot:
    unfinished = _unfinished(snapshot.timeline.active)
    if not unfinished:
        return snapshot
    held.assert_held()
    for path in unfinished:
        context.storage.delete(path)
    return reload_under_lock(context)


def _unfinished(active: ActiveTimeline) -> list[str]:
    """The files of savepoints that are none, the completed ones first."""
    found = []
    for files in active.files:
        if files.instant.action is Action.SAVEPOINT and not (
            files.completed and is_whole(active, files.instant)
        ):
            found += [file.entry.path for file in reversed(list(files))]
    return found


def _target(snapshot: Snapshot, instant: str | None) -> Instant:
    active = snapshot.timeline.active
    if instant is None:
        newest = max(active.completed(), default=None)
        if newest is None:
            raise _refused(
                "", "nothing_written", "The table has no completed write.", "Write to it first."
            )
        return newest
    target = snapshot.completed_write(instant)
    if target is not None:
        return target
    if active.with_time(instant):
        why = "It is not a completed write."
        raise _refused(instant, "not_completed", why, "Choose a completed write.")
    if snapshot.timeline.completion_time(instant) is not None:
        why = "It is not on the active timeline."
        raise _refused(instant, "instant_archived", why, "Choose a write of the active timeline.")
    raise _refused(instant, "unknown_instant", "There is none.", "Choose a write of the timeline.")


def _metadata(
    context: Context, snapshot: Snapshot, target: Instant, user: str, comment: str
) -> SavepointMetadata:
    """What is to be kept; refused where a clean has removed some of it."""
    files = all_files(snapshot)
    gone = frozenset(one.instant.requested for one in undone_by(snapshot, target))
    # A reader names the moment by requested time, a restore goes by completion: with writers
    # side by side that may be two states of the table, and both can be come back to.
    pasts = [
        Past.of(files, visibility)
        for visibility in (
            snapshot.visibility(target.requested),
            visibility_without(snapshot, gone),
        )
    ]
    names: dict[str, dict[str, None]] = {}
    for past in pasts:
        _refuse_cleaned(snapshot, target, past)
        for slice_ in (group.latest_merged() for group in past.groups):
            names.setdefault(slice_.partition, {}).update(dict.fromkeys(_names(slice_)))
    return SavepointMetadata(
        savepointed_by=user,
        savepointed_at=context.now_ms(),
        comments=comment,
        partition_metadata={
            partition: SavepointPartition(
                partition_path=partition, savepoint_data_file=tuple(listed)
            )
            for partition, listed in names.items()
        },
    )


def _refuse_cleaned(state: Snapshot, target: Instant, past: Past) -> None:
    missed = first_missed(state, past, target.requested)
    if missed is not None:
        now = "Choose a later instant."
        raise _refused(target.requested, "files_cleaned", missed.why, now)


def _names(slice_: FileSlice) -> Iterable[str]:
    """The base file, then the logs, newest first, as Java lists them."""
    base = [] if slice_.base_file is None else [slice_.base_file.name]
    return [*base, *(log.name for log in reversed(slice_.log_files))]


def _refuse_doomed(
    context: Context, snapshot: Snapshot, target: Instant, metadata: SavepointMetadata
) -> None:
    """Refuse while a clean is about to delete what the savepoint would name."""
    for pending in snapshot.timeline.active.pending((Action.CLEAN,)):
        files = snapshot.timeline.active.files_of(pending)
        if files is None or files.requested is None:
            continue
        path = files.requested.entry.path
        orders = files_to_delete(clean_payload.decode_plan(context.storage.read(path), path), path)
        for partition, listed in metadata.partition_metadata.items():
            doomed = set(orders.files.get(partition, ()))
            if doomed & set(listed.savepoint_data_file):
                raise Conflict(
                    "files_being_cleaned",
                    what=f"No savepoint was created at {target.requested}.",
                    why=f"The clean {pending.requested} is about to delete its files.",
                    now="Choose a later instant.",
                    instant=target.requested,
                    clean=pending.requested,
                )


def _completed_at(active: ActiveTimeline, requested: str) -> Instant | None:
    return next((one for one in active.savepoints() if one.requested == requested), None)


def _value(active: ActiveTimeline, instant: Instant, *, was_there: bool = False) -> Savepoint:
    metadata = payload.decode(active.read(instant), active.path(instant))
    return _of(instant, metadata, was_there=was_there)


def _of(instant: Instant, metadata: SavepointMetadata, *, was_there: bool = False) -> Savepoint:
    listed = metadata.partition_metadata.values()
    return Savepoint(
        instant=instant.requested,
        completed=instant.completed or "",
        user=metadata.savepointed_by,
        comment=metadata.comments,
        saved_at_ms=metadata.savepointed_at,
        files=sum(len(one.savepoint_data_file) for one in listed),
        partitions=len(listed),
        was_there=was_there,
    )


def _refused(instant: str, code: str, why: str, now: str) -> InvalidRequest:
    return InvalidRequest(
        code,
        what=f"No savepoint was created at {instant}." if instant else "No savepoint was created.",
        why=why,
        now=now,
        instant=instant,
    )


def _unknown(instant: str) -> InvalidRequest:
    return InvalidRequest(
        "unknown_savepoint",
        what=f"The table has no savepoint {instant}.",
        why="It may be deleted.",
        now="Look at the list of savepoints.",
        instant=instant,
    )


def _unsettled(target: Instant, cause: str) -> Unsettled:
    return Unsettled(
        "savepoint_unsettled",
        what=f"It is not known whether the savepoint {target.requested} was created.",
        why=cause,
        now="Create it again: if it exists, nothing changes.",
        instant=target.requested,
    )
