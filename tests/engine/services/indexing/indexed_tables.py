"""Tables with indexes, and where their keys live."""

from lakewarden import Table
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.metadata.reading.record_index import all_locations
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.schema import FILE_NAME, PARTITION_PATH, RECORD_KEY


def state_of(table: Table) -> Snapshot:
    return table._state()


def homes(table: Table) -> set[tuple[str, FileGroupId]]:
    """Where the rows are, as their own columns say."""
    rows = table.read_arrow([RECORD_KEY, PARTITION_PATH, FILE_NAME], use_metadata=False)
    return {
        (
            one[RECORD_KEY],
            FileGroupId(one[PARTITION_PATH], one[FILE_NAME].split("_")[0].lstrip(".")),
        )
        for one in rows.to_pylist()
    }


def indexed(table: Table) -> set[tuple[str, FileGroupId]]:
    """Where the record index says that they are."""
    shards = state_of(table).metadata.record_index()
    return {(one.key, one.file_group_id) for one in all_locations(shards)}
