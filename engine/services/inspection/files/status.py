"""The status of a file: whether it is there, and if not, what has removed it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lakewarden.engine.file_groups.file_names import parse_file_name
from lakewarden.engine.formats.instant_metadata import clean, restore, rollback
from lakewarden.engine.formats.instant_metadata.rollback import RollbackMetadata
from lakewarden.engine.services.inspection.history.history import History, Recorded, TimeSpan
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES, Action

_REMOVERS = (Action.CLEAN, Action.ROLLBACK, Action.RESTORE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatus:
    """A file is there, was deleted by an instant, or appears in no record."""

    status: str
    action: str | None = None
    instant: str | None = None
    is_archived: bool | None = None
    path: str | None = None


def file_status(history: History, partition: str, name: str) -> FileStatus:
    """What has become of a file; one that is there comes with the write that has made it.

    Whatever removed a file started after the write that made it, so the archive is read only from
    there on.
    """
    path = f"{partition}/{name}" if partition else name
    file = parse_file_name(name, 0)
    made = None if file is None else file.instant
    if history.storage.stat(path) is not None:
        return _there(history, made, history.storage.uri(path))
    for recorded in history.completed(_REMOVERS, TimeSpan(made), archived=True):
        if any(one.rpartition("/")[2] == name for one in _removed(recorded, partition)):
            return FileStatus(
                status="deleted",
                action=recorded.instant.action.value,
                instant=recorded.instant.requested,
                is_archived=recorded.is_archived,
            )
    return FileStatus(status="unknown")


def _there(history: History, made: str | None, address: str) -> FileStatus:
    if made is None:
        return FileStatus(status="exist", path=address)
    found = [
        (instant, is_archived)
        for instant, is_archived in history.instants(TimeSpan(made, made), archived=True)
        if instant.action.completed_as in COMPLETED_WRITES
    ]
    action, is_archived = (found[0][0].action.value, found[0][1]) if found else (None, None)
    return FileStatus(
        status="exist", action=action, instant=made, is_archived=is_archived, path=address
    )


def _removed(recorded: Recorded, partition: str) -> Iterator[str]:
    match recorded.instant.action:
        case Action.CLEAN:
            cleaned = clean.decode(recorded.content, recorded.path).partition_metadata
            if partition in cleaned:
                yield from cleaned[partition].success_delete_files
        case Action.ROLLBACK:
            yield from _rolled_back([rollback.decode(recorded.content, recorded.path)], partition)
        case _:
            restored = restore.decode(recorded.content, recorded.path).hoodie_restore_metadata
            for rollbacks in restored.values():
                yield from _rolled_back(rollbacks, partition)


def _rolled_back(rollbacks: Iterable[RollbackMetadata], partition: str) -> Iterator[str]:
    for one in rollbacks:
        if partition in one.partition_metadata:
            yield from one.partition_metadata[partition].success_delete_files
