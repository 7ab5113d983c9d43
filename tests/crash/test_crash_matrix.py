"""The crash matrix: whatever call an operation dies at, the table is exactly old or exactly new.

That holds for whoever reads right after the crash, and after the next writer has repaired what the
dead one left.
"""

from dataclasses import dataclass

import pytest

from lakewarden import Table
from lakewarden.engine.table.config import BACKUP_PATH, PROPERTIES_PATH, is_whole
from tests.crash.crash_cases import HISTORY, NEXT, contents, row
from tests.crash.dying_operations import (
    DEAD_AFTER_MS,
    SWEPT_AFTER_MS,
    CrashedTable,
    Death,
    creation_deaths,
    deaths,
    new_world,
    ports,
)
from tests.sampling import IS_SIMULATION
from tests.writing.model import Write
from tests.writing.shapes import Shape, carry_out

# Deaths come in threes: before a call, after it, and in the middle. A prime number takes a third of
# the calls in each way.
EVERY = 1 if IS_SIMULATION else 23
SHAPES = (
    Shape("cow", index="SIMPLE"),
    Shape("mor", index="RECORD_INDEX"),
    Shape("mor", is_partitioned=False, has_metadata=False, index="BUCKET"),
)


@dataclass(frozen=True)
class Victim:
    """An operation by name, and what it does to the model."""

    name: str
    write: Write

    def operation(self, table: Table) -> object:
        return carry_out(table, self.write)


VICTIMS = (
    Victim("upsert", Write("upsert", (row("k1", "b", 5), row("k7", "c", 5)))),
    Victim("insert", Write("insert", (row("n1", "a", 5), row("n2", "c", 5)))),
    Victim("delete", Write("delete", (row("k1", "b", 5), row("k2", "a", 5)))),
    Victim("overwrite", Write("overwrite_partitions", (row("o1", "a", 5),))),
)


def assert_old_or_new(death: Death, shape: Shape, old: tuple[Write, ...], new: Write) -> None:
    """What a reader sees, before and after the next write has repaired the table."""
    world = death.world
    outcomes = {
        "old": (contents(shape, *old), contents(shape, *old, NEXT)),
        "new": (contents(shape, *old, new), contents(shape, *old, new, NEXT)),
    }
    seen = [name for name, (now, _) in outcomes.items() if world.rows() == now]
    assert seen, f"{death}: neither old nor new"
    assert world.rows(use_metadata=False) == outcomes[seen[0]][0], f"{death}: listing differs"
    world.clock.advance(DEAD_AFTER_MS)
    carry_out(world.table(60), NEXT)
    # A commit that nobody had published yet is published by whoever comes next.
    then = [name for name, (_, later) in outcomes.items() if world.rows() == later]
    assert then, f"{death}: rows were lost or invented by the repair"
    assert seen == ["old"] or then[0] == "new", f"{death}: what was seen is gone"
    assert_tidy(world, shape, death)


def assert_tidy(world: CrashedTable, shape: Shape, death: Death) -> None:
    """No file is left that belongs to nothing, once the sweep is due."""
    world.clock.advance(SWEPT_AFTER_MS)
    carry_out(world.table(61), Write("upsert", (row("last", "a", 10),)))
    assert world.strays() == set(), f"{death}: stray files"
    assert world.differences_of_listings() == set(), f"{death}: files that are not there"
    assert world.rows() == world.rows(use_metadata=False), f"{death}: listings differ"
    assert not world.table(62).timeline().pending(), f"{death}: something is still pending"


def victims_of(shape: Shape) -> tuple[Victim, ...]:
    """All of them for `make simulate`; otherwise those whose calls differ most."""
    if not IS_SIMULATION:
        return VICTIMS[:1] if shape.type == "cow" or not shape.is_partitioned else VICTIMS[2:]
    # Without partitions an overwrite is one of the whole table, which the model does not know.
    return VICTIMS if shape.is_partitioned else VICTIMS[:-1]


@pytest.mark.parametrize(
    ("shape", "victim"),
    [(shape, victim) for shape in SHAPES for victim in victims_of(shape)],
    ids=lambda value: value.name if isinstance(value, Victim) else str(value),
)
def test_a_write_that_dies_is_as_if_it_never_was_or_is_whole(shape: Shape, victim: Victim) -> None:
    before = new_world(shape, HISTORY)
    found = deaths(before, victim.operation, every=EVERY)
    assert len(found) > 50 // EVERY
    for death in found.values():
        assert_old_or_new(death, shape, HISTORY, victim.write)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_rollback_that_dies_can_be_gone_on_with(shape: Shape) -> None:
    before = new_world(shape, HISTORY)
    newest = before.table(40).timeline().completed()[-1].requested

    def roll_back(table: Table) -> object:
        return table.rollback(newest)

    for death in deaths(before, roll_back, every=EVERY).values():
        world = death.world
        old, new = contents(shape, *HISTORY), contents(shape, HISTORY[0])
        now = world.rows(use_metadata=False)
        assert now in (old, new), f"{death}: neither old nor new"
        assert world.rows() == now, f"{death}: the metadata table says something else"
        world.clock.advance(DEAD_AFTER_MS)
        carry_out(world.table(60), NEXT)
        assert world.rows() in (
            contents(shape, *HISTORY, NEXT),
            contents(shape, HISTORY[0], NEXT),
        ), f"{death}: rows were lost or invented by the repair"
        assert_tidy(world, shape, death)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_creation_that_dies_leaves_no_table_or_an_empty_one(shape: Shape) -> None:
    for death in creation_deaths(shape, every=EVERY).values():
        world = death.world
        copies = map(world.storage.read_if_present, (PROPERTIES_PATH, BACKUP_PATH))
        if not any(map(is_whole, copies)):
            shape.create("", storage=world.storage, ports=ports(world.clock, 59))
        assert world.rows() == [], f"{death}: rows out of nothing"
        world.clock.advance(DEAD_AFTER_MS)
        carry_out(world.table(60), HISTORY[0])
        assert world.rows() == contents(shape, HISTORY[0]), f"{death}: the first write"
        assert world.rows(use_metadata=False) == world.rows(), f"{death}: listings differ"
