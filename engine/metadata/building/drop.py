"""Dropping partitions of the metadata table, or all of it.

Steps of `index-drop`: properties, definitions, files. Readers and writers ignore what a crash
leaves after the first step, and a later build replaces it.
"""

from collections.abc import Collection

from lakewarden.engine.metadata.reading.definitions import definitions_path
from lakewarden.engine.metadata.reading.table import load_metadata_table
from lakewarden.engine.metadata.writing.compact import withdraw_compactions
from lakewarden.engine.metadata.writing.definitions_file import forget_indexes, remove_definitions
from lakewarden.engine.metadata.writing.log_compact import withdraw_log_compactions
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import METADATA_FOLDER, TableConfig
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.timeline.next_time import TimeSource

PARTITIONS_KEY = "hoodie.table.metadata.partitions"
INFLIGHT_KEY = "hoodie.table.metadata.partitions.inflight"
DEFINITIONS_KEY = "hoodie.table.index.defs.path"


def drop_partitions(
    storage: Storage,
    config: TableConfig,
    partitions: Collection[str],
    times: TimeSource,
) -> None:
    """Drop some partitions, built or being built; the caller holds the table's lock."""
    state = load_metadata_table(storage, config)
    # Plans of the metadata table speak of files that will be gone.
    times.move_past(state.timeline.active.newest_time())
    if withdraw_log_compactions(state):
        state = load_metadata_table(storage, config)
    withdraw_compactions(state)
    update_properties(
        storage,
        {
            PARTITIONS_KEY: _without(config.metadata_partitions, partitions),
            INFLIGHT_KEY: _without(config.metadata_partitions_inflight, partitions),
        },
    )
    forget_indexes(storage, definitions_path(config), partitions)
    for partition in sorted(partitions):
        state.storage.delete_folder(partition)


def drop_metadata_table(storage: Storage, config: TableConfig) -> None:
    """Drop the metadata table as a whole; the caller holds the table's lock."""
    path = definitions_path(config)
    update_properties(storage, {PARTITIONS_KEY: "", INFLIGHT_KEY: "", DEFINITIONS_KEY: None})
    remove_definitions(storage, path)
    storage.delete_folder(METADATA_FOLDER)


def _without(listed: Collection[str], gone: Collection[str]) -> str:
    return ",".join(sorted(set(listed) - set(gone)))
