"""The crash matrix of compaction: whatever call it dies at, rows stay and the next one ends."""

import pytest

from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import RunLimits, pending_plans, run_pending
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import schedule
from lakewarden.engine.storage.port import Storage
from tests.crash.crash_cases import row
from tests.crash.dying_operations import DEAD_AFTER_MS, SWEPT_AFTER_MS, CrashedTable, Death, killed
from tests.crash.service_deaths import BESIDE
from tests.engine.services.service_table import ServiceWorld, contents, new_service_world
from tests.writing.model import Write
from tests.writing.shapes import Shape

# A prime number, so that all kinds of calls have their turn.
EVERY = 13
SHAPES = (
    Shape("mor", index="RECORD_INDEX"),
    Shape("mor", is_partitioned=False, has_metadata=False, index="BUCKET"),
)
HISTORY = (
    Write("upsert", tuple(row(f"k{n}", "ab"[n % 2], 1) for n in range(6))),
    Write("upsert", (row("k1", "b", 2), row("k2", "a", 2))),
    Write("delete", (row("k3", "b", 3),)),
)
LATE = Write("upsert", (row("k1", "b", 4),))
NEXT = Write("upsert", (row("k2", "a", 9), row("z", "b", 9)))


def execution(world: CrashedTable, seed: int, storage: Storage | None = None) -> None:
    assert isinstance(world, ServiceWorld)
    run_pending(world.context(seed, storage), COMPACTION, RunLimits())


def scheduling(world: CrashedTable, seed: int, storage: Storage | None = None) -> None:
    assert isinstance(world, ServiceWorld)
    schedule(world.context(seed, storage), COMPACTION, PlanRequest())


def assert_goes_on(death: Death, shape: Shape, *writes: Write) -> None:
    """Rows are as before; the next compaction, write and sweep leave nothing behind."""
    world = death.world
    assert isinstance(world, ServiceWorld)
    expected = contents(shape, *writes)
    assert world.rows(use_metadata=False) == expected, f"{death}: rows differ"
    assert world.rows() == expected, f"{death}: the metadata table says something else"
    world.clock.advance(DEAD_AFTER_MS)
    # Whoever writes next takes away a plan that was never published as a whole.
    world.write(BESIDE)
    execution(world, 60)
    assert pending_plans(world.context(61), COMPACTION) == (), f"{death}: the plan is stuck"
    expected = contents(shape, *writes, BESIDE)
    assert world.rows() == expected, f"{death}: rows differ after the next compaction"
    world.write(NEXT)
    schedule(world.context(62), COMPACTION, PlanRequest())
    execution(world, 63)
    world.clock.advance(SWEPT_AFTER_MS)
    world.write(Write("upsert", (row("last", "a", 10),)))
    everything = contents(shape, *writes, BESIDE, NEXT, Write("upsert", (row("last", "a", 10),)))
    assert world.rows() == everything, f"{death}: rows were lost or invented"
    assert world.rows(use_metadata=False) == everything, f"{death}: listings differ"
    assert world.strays() == set(), f"{death}: stray files"
    assert world.differences_of_listings() == set(), f"{death}: files that are not there"
    assert not world.snapshot().timeline.active.pending(), f"{death}: something is still pending"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_an_execution_that_dies_is_gone_on_with(shape: Shape) -> None:
    before = new_service_world(shape, *HISTORY)
    scheduling(before, 50)
    # Its log belongs to the new slice, whether that comes into being or not.
    before.write(LATE)
    found = killed(before, lambda world, stage: execution(world, 51, stage), every=EVERY)
    assert len(found) > 60 // EVERY
    for death in found.values():
        assert_goes_on(death, shape, *HISTORY, LATE)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_schedule_that_dies_leaves_a_plan_or_none(shape: Shape) -> None:
    before = new_service_world(shape, *HISTORY)
    found = killed(before, lambda world, stage: scheduling(world, 51, stage), every=EVERY)
    for death in found.values():
        assert_goes_on(death, shape, *HISTORY)
