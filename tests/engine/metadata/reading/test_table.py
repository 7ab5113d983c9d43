"""The metadata table's timeline: how it is laid out is read once."""

from dataclasses import replace

import pytest

from lakewarden.engine.metadata.reading.table import KnownLayout, MetadataTable
from lakewarden.engine.table.config import (
    BACKUP_PATH,
    METADATA_FOLDER,
    PROPERTIES_PATH,
    TableConfig,
)
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


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_a_backup_stands_for_own_properties_that_were_cut(share: float) -> None:
    table = TableInMemory().create()
    own = table.storage.below(METADATA_FOLDER)
    whole, before = own.read(PROPERTIES_PATH), table.metadata.timeline.active
    own.put(BACKUP_PATH, whole)
    own.put(PROPERTIES_PATH, whole[: int(len(whole) * share)])
    found = table.metadata.timeline.active
    assert (found.layout, found.instants) == (before.layout, before.instants)
