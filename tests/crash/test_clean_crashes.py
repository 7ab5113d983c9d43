"""A clean that dies at any call loses no row, and the next one brings it to its end."""

import pytest

from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.retention.clean_plan import Cleaned
from lakewarden.engine.services.savepoint.run import savepoint
from lakewarden.engine.storage.port import Storage
from tests.crash.dying_operations import DEAD_AFTER_MS, Death, killed
from tests.engine.services.service_table import (
    ServiceWorld,
    contents,
    inserted,
    new_service_world,
    updated,
)
from tests.sampling import IS_SIMULATION
from tests.writing.model import Write, contents_of
from tests.writing.shapes import Shape

# A prime number, so that all kinds of calls have their turn.
EVERY = 1 if IS_SIMULATION else 31
SHAPES = (Shape("cow"), Shape("cow", has_metadata=False))
# A partition goes, another one has slices to be cleaned, and a savepoint keeps some.
HISTORY = (
    inserted(3, partitions="abc"),
    Write("delete_partitions", partitions=("c",)),
    *(updated(2, ts=ts) for ts in range(2, 5)),
)


def cleaned(world: ServiceWorld, seed: int, storage: Storage | None = None) -> Cleaned:
    return clean(world.context(seed, storage, hoodie__clean__commits__retained=1))


def deaths_of(before: ServiceWorld) -> list[Death]:
    """A clean that dies at any call."""
    found = killed(before, lambda world, stage: cleaned(world, 50, stage), every=EVERY)
    assert len(found) > 60 / EVERY
    return list(found.values())


def paths(world: ServiceWorld) -> set[str]:
    return {e.path for e in world.storage.walk("") if not e.path.startswith(".hoodie/")}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_clean_that_dies_is_gone_on_with(shape: Shape) -> None:
    before = new_service_world(shape, *HISTORY[:3])
    saved = savepoint(before.context(2))
    before.write(*HISTORY[3:])
    rows, then = contents(shape, *HISTORY), contents(shape, *HISTORY[:3])
    undisturbed = before.copy()
    assert cleaned(undisturbed, 50).partitions_deleted == ("p=c",)
    left = paths(undisturbed)
    assert len(left) < len(paths(before))
    for death in deaths_of(before):
        world = death.world
        assert world.rows() == rows, f"{death}: rows are lost"
        assert world.rows(use_metadata=False) == rows, f"{death}: listing differs"
        world.clock.advance(DEAD_AFTER_MS)
        cleaned(world, 60)
        assert world.rows() == world.rows(use_metadata=False) == rows, f"{death}: after the next"
        assert paths(world) == left, f"{death}: it has not come to its end"
        assert not world.differences_of_listings(), f"{death}: files that are not there"
        assert not world.table(61).timeline().pending(), f"{death}: something is pending"
        kept = contents_of(world.table(62).read_arrow(as_of=saved.instant))
        assert kept == then, f"{death}: the savepoint is harmed"
        assert world.table(63).partitions() == ("p=a", "p=b"), f"{death}: partitions"


def test_a_partition_that_is_written_to_again_in_spite_of_a_dead_clean_is_found() -> None:
    before = new_service_world(SHAPES[0], *HISTORY)
    again = inserted(3, partitions="abc")
    for death in deaths_of(before):
        world = death.world
        world.clock.advance(DEAD_AFTER_MS)
        world.table(60).upsert(again.table())
        cleaned(world, 61)
        rows = contents(SHAPES[0], *HISTORY, again)
        assert world.rows() == world.rows(use_metadata=False) == rows, f"{death}"
        assert not world.differences_of_listings(), f"{death}: files that are not there"
