"""Partitions that are empty: a clean removes them, unless a writer is about to write there.

What makes a folder a partition is its metadata file. A writer leaves a marker before it looks for
that file, and makes it if it is not there. So the clean removes the file first and looks for
markers afterwards: a writer without a marker by then will find the file gone, and make it.
"""

from lakewarden.engine.file_groups.file_names import PARTITION_METADATA
from lakewarden.engine.file_groups.listing import data_files
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.markers import read_markers
from lakewarden.engine.write.files.partition_files import ensure_partition


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
