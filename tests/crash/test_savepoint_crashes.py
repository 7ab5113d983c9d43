"""A savepoint that dies at every storage call, or is just being made, hides no row of its write."""

import pytest

from lakewarden.engine.services.savepoint.run import list_savepoints, savepoint
from tests.crash.dying_operations import killed
from tests.engine.services.service_table import contents, inserted, new_service_world, updated
from tests.writing.shapes import Shape

HISTORY = (inserted(4), updated(3))
LATER = updated(4, ts=5)
SHAPES = [
    Shape("cow"),
    Shape("mor"),
    Shape("cow", index="RECORD_INDEX"),
    Shape("mor", index="RECORD_INDEX"),
    Shape("mor", index="BUCKET"),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_write_that_was_to_be_saved_stays_what_it_was(shape: Shape) -> None:
    before = new_service_world(shape, *HISTORY)
    now = contents(shape, *HISTORY)
    deaths = killed(before, lambda world, stage: savepoint(world.context(51, stage)), every=3)
    assert len(deaths) > 5
    for death in deaths.values():
        world = death.world
        assert world.rows() == world.rows(use_metadata=False) == now, str(death)
        world.write(LATER)
        then = contents(shape, *HISTORY, LATER)
        assert world.rows() == world.rows(use_metadata=False) == then, str(death)
        savepoint(world.context(52))
        assert world.rows() == world.rows(use_metadata=False) == then, str(death)
        assert not [one for one in world.table(53).validate() if one.finding.verdict == "failed"]
        assert len(list_savepoints(world.context(54))) <= 2


def test_an_index_is_built_beside_a_savepoint_that_has_died() -> None:
    before = new_service_world(Shape("mor"), *HISTORY)
    deaths = killed(before, lambda world, stage: savepoint(world.context(51, stage)), every=3)
    for death in deaths.values():
        world = death.world
        world.table(55).create_index("record_index", ["id"], "record_index")
        world.write(LATER)
        assert world.rows() == contents(Shape("mor"), *HISTORY, LATER), str(death)
