"""Instants on the metadata table's own timeline, which one writer at a time moves, under the lock.

Their empty files are simply put: who finds one of an attempt that died has made it.
"""

from collections.abc import Sequence

from lakewarden.engine.formats.payloads import commit
from lakewarden.engine.formats.payloads.commit import CommitMetadata, WriteStat
from lakewarden.engine.kernel.errors import Conflict, Unsettled
from lakewarden.engine.metadata.record_schema import COMMIT_SCHEMA_TEXT
from lakewarden.engine.metadata.write_state import WriteState
from lakewarden.engine.storage.port import Lost, Unknown, Won
from lakewarden.engine.table.schema import SCHEMA_KEY
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.instant import Action, Instant, State
from lakewarden.engine.timeline.instant_files import create_instant
from lakewarden.engine.timeline.next_time import TimeSource


def begin(state: WriteState, requested: str, action: Action, plan: bytes = b"") -> None:
    """Publish an instant as requested, with its plan if it has one, and as inflight."""
    for stage, content in ((State.REQUESTED, plan), (State.INFLIGHT, b"")):
        state.storage.put(state.layout.path(Instant(requested, action, stage)), content)


def complete(
    state: WriteState, requested: str, action: Action, content: bytes, times: TimeSource
) -> None:
    """Publish an instant as completed now, later than anything on either timeline."""
    instant = Instant(requested, action, State.COMPLETED, times.next())
    match create_instant(state.storage, state.layout, instant, content):
        case Won():
            return
        case Lost():
            raise Conflict(
                "metadata_completed_elsewhere",
                what=f"Somebody else completed {instant} of the metadata table.",
                why="The table's lock was not held all the time.",
                now="Write again.",
                instant=requested,
            )
        case Unknown(cause):
            raise Unsettled(
                "metadata_unsettled",
                what=f"Whether {instant} of the metadata table was completed is not known.",
                why=cause,
                now="Write again: another attempt replaces what this one left.",
                instant=requested,
            )


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
