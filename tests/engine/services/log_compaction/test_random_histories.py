"""Random writes with log compactions in between: readers never see a difference."""

import random

import pytest

from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.log_compaction.service import LOG_COMPACTION
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from tests.engine.services.service_table import ServiceWorld, inserted, new_service_world, row
from tests.writing.model import Write
from tests.writing.shapes import Shape

SHAPES = (
    Shape("mor", is_partitioned=False),
    Shape("mor", is_partitioned=False, is_event_time=False, index="BUCKET"),
)
KEYS = 5


def random_write(randomness: random.Random, step: int) -> Write:
    """New versions of rows or deletes, some of them late."""
    keys = randomness.sample(range(KEYS), randomness.randint(1, 3))
    times = (randomness.choice((step, step - 3, step - 3)) for _ in keys)
    rows = tuple(row(f"k{n}", max(ts, 1)) for n, ts in zip(keys, times, strict=True))
    return Write(randomness.choice(("upsert", "upsert", "delete")), rows)


def compact(world: ServiceWorld, *, while_writing: Write | None) -> bool:
    """A log compaction, perhaps with a write between its plan and its commit."""
    context = world.context(40, hoodie__log__compaction__blocks__threshold=2)
    plan = schedule(context, LOG_COMPACTION, PlanRequest())
    if not isinstance(plan, Scheduled):
        return False
    if while_writing is not None:
        world.write(while_writing)
    world.clock.advance(1000)
    execute(context, LOG_COMPACTION, plan.instant)
    world.clock.advance(1000)
    return True


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_are_those_of_the_same_writes_without_log_compactions(shape: Shape, seed: int) -> None:
    randomness = random.Random(seed)
    world = new_service_world(shape, inserted(KEYS, partitions="a"))
    twin = world.copy()
    world.clock.advance(10_000_000)
    compacted = 0
    for step in range(2, 10):
        write = random_write(randomness, step)
        is_beside = randomness.random() < 0.3
        if step % 3 == 0 or is_beside:
            done = compact(world, while_writing=write if is_beside else None)
            compacted += done
            if not (done and is_beside):
                world.write(write)
        else:
            world.write(write)
        twin.write(write)
        assert world.rows() == twin.rows(), f"seed {seed}, step {step}"
        assert world.rows(use_metadata=False) == world.rows()
    assert compacted > 1
