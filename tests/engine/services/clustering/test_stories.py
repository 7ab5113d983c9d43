"""Random histories with clusterings of all kinds between the writes hold the rows of the model."""

import os
from random import Random

import pytest

from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from tests.engine.services.service_table import ServiceWorld, inserted, new_service_world
from tests.writing.model import Story
from tests.writing.shapes import PARTITIONED_RECORD_INDEX, Shape

SEEDS = 40 if "LAKEWARDEN_KILLS" in os.environ else 1
PREFIX = "hoodie__clustering__plan__strategy__"
SHAPES = (
    Shape("cow", index="BLOOM"),
    Shape("mor", index="RECORD_INDEX", is_partitioned=False),
    Shape("mor", index=PARTITIONED_RECORD_INDEX, is_event_time=False),
)


def some_way(random: Random) -> dict[str, object]:
    """How a clustering goes about it this time."""
    layout = random.choice(["LINEAR", "ZORDER", "HILBERT"])
    columns = random.choice(["", "id", "ts,name", "v,p,id"])
    return {
        f"{PREFIX}sort__columns": columns,
        f"{PREFIX}max__num__groups": random.choice([1, 2, 30]),
        f"{PREFIX}target__file__max__bytes": random.choice([500_000, 1 << 30]),
        f"{PREFIX}max__bytes__per__group": random.choice([900_000, 2 << 30]),
        "hoodie__layout__optimize__strategy": layout,
        "lakewarden__clustering__copied_rows_min": random.choice([1, 4, 1000]),
        "lakewarden__clustering__sorted_together_bytes": random.choice([400_000, 1 << 30]),
    }


def cluster(world: ServiceWorld, random: Random, seed: int) -> None:
    arguments = some_way(random)
    found = schedule(world.context(seed, **arguments), CLUSTERING, PlanRequest())
    world.clock.advance(1000)
    if isinstance(found, Scheduled):
        execute(world.context(seed + 1, **arguments), CLUSTERING, found.instant)
        world.clock.advance(1000)


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_clusterings_change_no_row(shape: Shape, seed: int) -> None:
    random = Random(seed)
    story = Story(seed, shape.model(), kinds=("bulk_insert", "upsert", "delete"))
    begin = inserted()
    story.model.apply(begin)
    world = new_service_world(shape, begin)
    for number in range(4):
        world.write(*story.writes(random.randint(1, 3)))
        cluster(world, random, 1000 * (number + 1))
        assert world.rows() == story.model.contents()
        assert world.rows(use_metadata=False) == story.model.contents()
    assert world.strays() == set()
