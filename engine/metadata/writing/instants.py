"""Instants on the metadata table's own timeline, which one writer at a time moves, under the lock.

The lock is not relied on: a writer may have paused for so long that others have it. What has to be
one writer's own is created exclusively, and who completes looks before and behind: before, so that
nothing is completed that others have ended or taken back, and behind, since two who each put down
their own first and look for the other's then cannot both miss it. A deltacommit does not count
before the instant of the data table has completed, so that there is time for that look.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NoReturn

from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, WriteStat
from lakewarden.engine.kernel.errors import Conflict, CorruptTable, Unsettled
from lakewarden.engine.metadata.encoding.records import COMMIT_SCHEMA_TEXT
from lakewarden.engine.metadata.reading.table import MetadataTable
from lakewarden.engine.storage.port import Lost, Storage, Unknown, Won
from lakewarden.engine.storage.side_by_side import both
from lakewarden.engine.table.schema import SCHEMA_KEY
from lakewarden.engine.timeline.instants.instant import Action, Instant, InstantFiles, State
from lakewarden.engine.timeline.next_time import TimeSource, following
from lakewarden.engine.timeline.timeline import ActiveTimeline


def begin(state: MetadataTable, requested: str, action: Action, plan: bytes = b"") -> None:
    """Publish an instant as requested, with its plan if it has one, and as inflight.

    Files are simply put: who finds one of an attempt that died has made it.
    """
    for stage, content in ((State.REQUESTED, plan), (State.INFLIGHT, b"")):
        state.storage.put(state.layout.path(Instant(requested, action, stage)), content)


def publish(state: MetadataTable, requested: str, action: Action, plan: bytes) -> None:
    """The same for an instant of which there must be one plan, ours."""
    path = state.layout.path(Instant(requested, action, State.REQUESTED))
    create_file(state.storage, path, plan, requested)
    state.storage.put(state.layout.path(Instant(requested, action, State.INFLIGHT)), b"")


def complete_now(
    state: MetadataTable,
    requested: str,
    content: bytes,
    times: TimeSource,
    beside: Callable[[], object] = lambda: None,
) -> None:
    """Publish a deltacommit as completed now, later than anything on either timeline.

    That time decides whether it lies above a compaction or below it. A compaction that was planned
    meanwhile for a later time does not hold it; its planner looks for it afterwards. `beside` is
    asked at the time of the look behind; whatever it says, what must be taken back is taken back.
    """
    instant = Instant(requested, Action.DELTA_COMMIT, State.COMPLETED, times.next())
    _create_completed(state, instant, content)
    both(state.storage, partial(_look_for_later, state, instant), beside)


def complete(state: MetadataTable, requested: str, action: Action, content: bytes) -> None:
    """Publish an instant as completed whose completion time says nothing.

    All attempts give it the same one, so that one of them wins.
    """
    instant = Instant(requested, action.completed_as, State.COMPLETED, following(requested))
    _create_completed(state, instant, content)
    _look_behind(state, instant)


def _create_completed(state: MetadataTable, instant: Instant, content: bytes) -> None:
    """Create a completed file after a look before; a look behind has to follow."""
    if not _is_pending(state, instant.requested):
        raise completed_elsewhere(instant.requested)
    create_file(state.storage, state.layout.path(instant), content, instant.requested)


def _look_for_later(state: MetadataTable, instant: Instant) -> None:
    """Look behind; a compaction that was planned past the instant takes it back as well."""
    now = _look_behind(state, instant)
    assert instant.completed is not None
    later = [one for one in now.files if one.instant.requested > instant.completed]
    if any(is_compaction(one) for one in later):
        _take_back(state, instant)


def _look_behind(state: MetadataTable, instant: Instant) -> ActiveTimeline:
    """The timeline now; takes back what others have completed as well, or had taken back."""
    return _as_completed(state, instant) or _take_back(state, instant)


def _take_back(state: MetadataTable, instant: Instant) -> NoReturn:
    state.storage.delete(state.layout.path(instant))
    raise completed_elsewhere(instant.requested)


def _as_completed(state: MetadataTable, instant: Instant) -> ActiveTimeline | None:
    """The timeline with the instant; None where others have completed it, or removed it."""
    try:
        now = state.timeline.active.again()
    except CorruptTable as error:
        if error.code != "two_completions":
            raise
        return None
    files = now.files_of(instant)
    return now if files and files.requested and files.completed else None


def is_compaction(files: InstantFiles) -> bool:
    """Whether an instant of the metadata table folds logs into base files, or has done so."""
    return files.started_as is Action.COMPACTION or files.instant.action is Action.COMMIT


def create_file(storage: Storage, path: str, content: bytes, requested: str) -> None:
    """Create a file that no other process can have made, as long as the lock is held."""
    match storage.create_exclusive(path, content):
        case Won():
            return
        case Lost():
            raise completed_elsewhere(requested)
        case Unknown(cause):
            raise Unsettled(
                "metadata_unsettled",
                what=f"It is not known whether {path} of the metadata table was written.",
                why=cause,
                now="Write again: the next attempt replaces what this one left.",
                instant=requested,
            )


def completed_elsewhere(requested: str) -> Conflict:
    """The error of a writer that has lost the lock while it wrote to the metadata table."""
    return Conflict(
        "metadata_completed_elsewhere",
        what=f"Another writer completed or rolled back {requested} of the metadata table.",
        why="This process lost the table's lock for a while.",
        now="Write again.",
        instant=requested,
    )


def _is_pending(state: MetadataTable, requested: str) -> bool:
    now = state.timeline.active.again()
    return any(one.instant.requested == requested and one.completed is None for one in now.files)


def remove(state: MetadataTable, files: InstantFiles) -> None:
    """Remove an instant, the completed file first: from then on readers see nothing of it."""
    for file in reversed(list(files)):
        state.storage.delete(file.entry.path)


def commit_content(
    stats: Sequence[WriteStat],
    operation: str,
    *,
    compacted: bool = False,
    extra: Mapping[str, str] | None = None,
) -> bytes:
    """The content of a completed commit or deltacommit."""
    by_partition: dict[str, tuple[WriteStat, ...]] = {}
    for stat in stats:
        partition = stat.partition_path or ""
        by_partition[partition] = (*by_partition.get(partition, ()), stat)
    metadata = CommitMetadata(
        partition_to_write_stats=by_partition,
        compacted=compacted,
        extra_metadata={SCHEMA_KEY: COMMIT_SCHEMA_TEXT, **(extra or {})},
        operation_type=operation,
    )
    return commit.encode(metadata)
