"""Dropping indexes dies at any call: what is left is true or gone, and can go or come again."""

from collections.abc import Callable

import pytest

from lakewarden import Table
from lakewarden.engine.metadata.reading.definitions import DEFAULT_PATH, defined_indexes
from lakewarden.engine.metadata.reading.table import RECORD_INDEX
from tests.crash.dying_operations import DEAD_AFTER_MS, killed
from tests.engine.services.indexing.indexed_tables import homes, indexed
from tests.engine.services.service_table import contents, inserted, new_service_world, updated
from tests.sampling import IS_SIMULATION
from tests.writing.model import Write, contents_of
from tests.writing.shapes import Shape

# A prime number, so that all kinds of calls have their turn.
EVERY = 1 if IS_SIMULATION else 11
SHAPE = Shape("mor", index="RECORD_INDEX")
HISTORY = (inserted(), updated(3))
NEXT, LAST = updated(4, ts=5), inserted(8)


def drop_record_index(table: Table) -> object:
    return table.drop_index(RECORD_INDEX, if_exists=True)


def drop_statistics(table: Table) -> object:
    return table.drop_index("column_stats", if_exists=True)


def drop_everything(table: Table) -> object:
    return table.delete_metadata_table()


@pytest.mark.parametrize("drop", [drop_record_index, drop_statistics, drop_everything])
def test_an_index_whose_removal_dies_is_true_or_gone(drop: Callable[[Table], object]) -> None:
    before = new_service_world(SHAPE, *HISTORY)
    deaths = killed(before, lambda world, stage: drop(world.table(50, stage)), every=EVERY)
    assert len(deaths) > 20 / EVERY
    for death in deaths.values():
        world = death.world
        assert_rows(world.table(59), *HISTORY, death=str(death))
        world.clock.advance(DEAD_AFTER_MS)
        world.table(60).upsert(NEXT.table())
        assert_rows(world.table(61), *HISTORY, NEXT, death=str(death))
        # Others know of no backup.
        kept = world.storage.read_if_present(DEFAULT_PATH)
        assert kept is None or defined_indexes(kept, DEFAULT_PATH) is not None, death
        drop(world.table(62))
        world.table(63).create_index(RECORD_INDEX, if_not_exists=True)
        world.table(64).upsert(LAST.table())
        assert_rows(world.table(65), *HISTORY, NEXT, LAST, death=str(death))
        assert world.table(66).config.has_metadata(RECORD_INDEX), death
        assert not world.differences_of_listings(), death


@pytest.mark.parametrize("version", [8, 9])
def test_a_change_of_version_that_dies_leaves_one_or_the_other_and_goes_on(version: int) -> None:
    before = new_service_world(SHAPE, *HISTORY)
    before.table(48).change_version(17 - version)
    deaths = killed(
        before, lambda world, stage: world.table(50, stage).change_version(version), every=EVERY * 3
    )
    for death in deaths.values():
        world = death.world
        assert_rows(world.table(59), *HISTORY, death=str(death))
        world.clock.advance(DEAD_AFTER_MS)
        world.table(60).upsert(NEXT.table())
        assert_rows(world.table(61), *HISTORY, NEXT, death=str(death))
        assert world.table(62).change_version(version).version == version
        world.table(63).upsert(LAST.table())
        assert_rows(world.table(64), *HISTORY, NEXT, LAST, death=str(death))
        assert world.table(65).config.version == version
        assert not world.differences_of_listings(), death


def assert_rows(table: Table, *writes: Write, death: str) -> None:
    """All rows are there, and where the record index says."""
    expected = contents(SHAPE, *writes)
    assert contents_of(table.read_arrow()) == expected, f"{death}: rows differ"
    assert contents_of(table.read_arrow(use_metadata=False)) == expected, f"{death}: listing"
    if table.config.has_metadata(RECORD_INDEX):
        assert indexed(table) == homes(table), f"{death}: the record index is untrue"
