"""Instants on the metadata table's own timeline, which one writer at a time moves, under the lock.

Their empty files are simply put: who finds one of an attempt that died has made it. A writer that
has paused for so long that it lost the lock finds out when it completes what others have ended.
"""

from collections.abc import Sequence

from lakewarden.engine.formats.payloads import commit
from lakewarden.engine.formats.payloads.commit import CommitMetadata, WriteStat
from lakewarden.engine.kernel.errors import Conflict, Unsettled
from lakewarden.engine.metadata.record_schema import COMMIT_SCHEMA_TEXT
from lakewarden.engine.metadata.write_state import WriteState
from lakewarden.engine.storage.port import Lost, Storage, Unknown, Won
from lakewarden.engine.table.schema import SCHEMA_KEY
from lakewarden.engine.timeline.active import InstantFiles, load_active
from lakewarden.engine.timeline.instant import Action, Instant, State
from lakewarden.engine.timeline.next_time import TimeSource


def begin(state: WriteState, requested: str, action: Action, plan: bytes = b"") -> None:
    """Publish an instant as requested, with its plan if it has one, and as inflight."""
    for stage, content in ((State.REQUESTED, plan), (State.INFLIGHT, b"")):
        state.storage.put(state.layout.path(Instant(requested, action, stage)), content)


def complete(
    state: WriteState, requested: str, action: Action, content: bytes, times: TimeSource
) -> None:
    """Publish an instant as completed now, later than anything on either timeline.

    Completed files differ in their names, so that nothing but looking keeps one from being there
    twice.
    """
    if not _is_pending(state, requested):
        raise _completed_elsewhere(requested)
    instant = Instant(requested, action, State.COMPLETED, times.next())
    create_file(state.storage, state.layout.path(instant), content, requested)


def create_file(storage: Storage, path: str, content: bytes, requested: str) -> None:
    """Create a file that nobody else can have made, as long as the lock is held."""
    match storage.create_exclusive(path, content):
        case Won():
            return
        case Lost():
            raise _completed_elsewhere(requested)
        case Unknown(cause):
            raise Unsettled(
                "metadata_unsettled",
                what=f"Whether {path} of the metadata table was written is not known.",
                why=cause,
                now="Write again: another attempt replaces what this one left.",
                instant=requested,
            )


def _completed_elsewhere(requested: str) -> Conflict:
    """What a writer is told that has lost the lock while it wrote to the metadata table."""
    return Conflict(
        "metadata_completed_elsewhere",
        what=f"Somebody else completed {requested} of the metadata table, or took it back.",
        why="The table's lock was not held all the time.",
        now="Write again.",
        instant=requested,
    )


def _is_pending(state: WriteState, requested: str) -> bool:
    now = load_active(state.storage, state.layout)
    return any(one.instant.requested == requested and one.completed is None for one in now.files)


def remove(state: WriteState, files: InstantFiles) -> None:
    """Remove an instant, the completed file first: from then on readers see nothing of it."""
    for file in reversed(list(files)):
        state.storage.delete(file.entry.path)


def commit_content(stats: Sequence[WriteStat], operation: str, *, compacted: bool = False) -> bytes:
    """The content of a completed commit or deltacommit."""
    by_partition: dict[str, tuple[WriteStat, ...]] = {}
    for stat in stats:
        partition = stat.partition_path or ""
        by_partition[partition] = (*by_partition.get(partition, ()), stat)
    metadata = CommitMetadata(
        partition_to_write_stats=by_partition,
        compacted=compacted,
        extra_metadata={SCHEMA_KEY: COMMIT_SCHEMA_TEXT},
        operation_type=operation,
    )
    return commit.encode(metadata)
