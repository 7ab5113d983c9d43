"""Current slices: what a write meets, the newest slice of every live file group."""

from collections.abc import Sequence

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.snapshot import Snapshot


def latest_file_slices(state: Snapshot, partitions: Sequence[str] | None) -> tuple[FileSlice, ...]:
    """The slices of some partitions, of all without any, sorted by partition and file id.

    Logs above a pending compaction belong to the slice below it, as they do for a reader.
    """
    chosen = None if partitions is None else tuple(partitions)
    groups = state.file_groups(state.visibility(), chosen, use_metadata=True)
    return tuple(group.latest_merged() for group in groups)
