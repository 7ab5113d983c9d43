"""The metadata table's timeline: how it is laid out is read once."""

from dataclasses import replace

from lakewarden.engine.metadata.reading.table import KnownLayout, MetadataTable
from lakewarden.engine.table.config import METADATA_FOLDER, PROPERTIES_PATH, TableConfig
from lakewarden.engine.testing.faults import FaultyStorage
from tests.engine.metadata.table_in_memory import TableInMemory


def looks(table: TableInMemory, known: KnownLayout, config: TableConfig) -> int:
    """How often a look at the timeline reads the metadata table's own properties."""
    storage = FaultyStorage(table.storage)
    assert MetadataTable(storage, config, table.timeline, known=known).timeline.active.instants
    path = f"{METADATA_FOLDER}/{PROPERTIES_PATH}"
    return [call.path for call in storage.calls].count(path)


def test_the_own_properties_are_read_again_only_when_those_of_the_table_have_changed() -> None:
    table, known = TableInMemory().create(), KnownLayout()
    config = table.config
    changed = replace(config, properties={**config.properties, "hoodie.table.version": "10"})
    assert [looks(table, known, one) for one in (config, config, changed, changed)] == [1, 0, 1, 0]
    assert looks(table, KnownLayout(), changed) == 1
