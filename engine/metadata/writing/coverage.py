"""Coverage: whether a compaction of the metadata table takes all that lies below its time.

Its base files replace all that was written before that time. A deltacommit below that time which it
does not hold would be lost to readers. What was rolled back since it was planned would come back.
"""

from collections.abc import Collection
from functools import partial

from lakewarden.engine.file_groups.file_names import parse_file_name
from lakewarden.engine.file_groups.slices import (
    FileGroup,
    FileGroupId,
    file_groups,
    load_visibility,
)
from lakewarden.engine.formats.instant_metadata.compaction import CompactionPlan, decode_plan
from lakewarden.engine.metadata.reading.table import MetadataTable
from lakewarden.engine.metadata.writing.builds import compacted_partitions
from lakewarden.engine.storage.side_by_side import together
from lakewarden.engine.timeline.instants.instant import InstantFiles


def covers(
    now: MetadataTable,
    instant: str,
    plan: CompactionPlan,
    partitions: Collection[str] | None = None,
) -> bool:
    """Whether the plan of a compaction names just what lies below it now, in some partitions.

    Without a choice they are those that compactions take.

    What completes later than this look is either above its time, or finds its plan and gives way.
    """
    if any(_completed(now, reported) <= instant for reported in now.uncertain()):
        return False
    wanted = {
        FileGroupId(one.partition_path or "", one.file_id or ""): frozenset(
            address.rpartition("/")[2] for address in one.delta_file_paths
        )
        for one in plan.operations
        if one.delta_file_paths
    }
    visibility = load_visibility(now.timeline.active, now.validity, names_decide=False)
    names = compacted_partitions(now) if partitions is None else partitions
    listings = together(now.storage, [partial(now.files, name) for name in names])
    groups = [
        group
        for name, files in zip(names, listings, strict=True)
        for group in file_groups(name, files, visibility)
    ]
    below = {group.key: _logs_below(now, group, instant) for group in groups}
    return {key: logs for key, logs in below.items() if logs} == wanted


def has_taken(state: MetadataTable, compaction: InstantFiles, reported: str) -> bool:
    """Whether a compaction has folded what an instant wrote into a partition that is still there.

    True if its plan is not there.
    """
    if compaction.requested is None:
        return True
    path = compaction.requested.entry.path
    plan = decode_plan(state.storage.read(path), path)
    ready = state.config.metadata_partitions
    operations = (one for one in plan.operations if one.partition_path in ready)
    names = (name for one in operations for name in one.delta_file_paths)
    files = (parse_file_name(name.rpartition("/")[2], 0) for name in names)
    return any(file is not None and file.instant == reported for file in files)


def folded_partitions(state: MetadataTable, compaction: InstantFiles) -> frozenset[str]:
    """The partitions of which a compaction has folded logs; all where its plan is not there."""
    if compaction.requested is None:
        return frozenset(state.config.metadata_partitions)
    path = compaction.requested.entry.path
    operations = decode_plan(state.storage.read(path), path).operations
    return frozenset(one.partition_path or "" for one in operations if one.delta_file_paths)


def _logs_below(now: MetadataTable, group: FileGroup, instant: str) -> frozenset[str]:
    """The logs of the newest slice below an instant that were written before it."""
    slices = [one for one in group.slices if one.base_instant < instant]
    if not slices:
        return frozenset()
    return frozenset(
        log.name for log in slices[-1].log_files if _completed(now, log.instant) <= instant
    )


def _completed(now: MetadataTable, instant: str) -> str:
    completed = now.timeline.completion_time(instant)
    assert completed is not None
    return completed
