"""Which partitions of the metadata table were built after an instant, from the files of then.

A rollback takes a write's own deltacommit out of the metadata table. It cannot take the write out
of a partition's first content: a partition built after the write is untrue once that is undone.
"""

from lakewarden.engine.file_groups.file_names import PARTITION_METADATA
from lakewarden.engine.formats.properties import parse_properties
from lakewarden.engine.metadata.reading.table import (
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
    MetadataTable,
)
from lakewarden.engine.table.config import TableConfig

_BEGAN_AT = "commitTime"


def built_after(state: MetadataTable, config: TableConfig, moment: str) -> tuple[str, ...]:
    """The partitions that may hold what was true at a moment, with those that are made from them.

    Without the list of files there is no metadata table, so that all partitions go with it.
    """
    listed = (*config.metadata_partitions, *config.metadata_partitions_inflight)
    found = {one for one in listed if _was_built_after(state, one, moment)}
    if FILES in found:
        return listed
    return tuple(one for one in listed if one in found or _is_made_from(one, found))


def _was_built_after(state: MetadataTable, partition: str, moment: str) -> bool:
    """By the instant that the partition says it began with; one of which nothing is known counts.

    That is the initialisation, or to Java the first write that came to the partition.
    """
    path = f"{partition}/{PARTITION_METADATA}"
    content = state.storage.read_if_present(path)
    began = None if content is None else parse_properties(content, path).get(_BEGAN_AT)
    completed = None if began is None else state.timeline.completion_time(began)
    return completed is None or completed > moment


def _is_made_from(partition: str, others: set[str]) -> bool:
    if partition == PARTITION_STATS:
        return COLUMN_STATS in others
    return partition.startswith(SECONDARY_INDEX_PREFIX) and RECORD_INDEX in others
