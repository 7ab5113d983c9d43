"""Clustering slices that differ in how their files keep texts."""

from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.table.config import SETTING_PREFIX
from lakewarden.engine.table.properties_file import update_properties
from tests.engine.services.clustering.clustered_tables import clustered
from tests.engine.services.service_table import contents, new_service_world, row
from tests.writing.model import Write
from tests.writing.shapes import Shape


def test_some_keep_texts_as_dictionaries_and_others_do_not() -> None:
    shape = Shape("mor", index="BUCKET")
    many = Write("upsert", tuple(row(f"k{n}", 1, "a") for n in range(200)))
    world = new_service_world(shape, many)
    plan = schedule(world.context(50), COMPACTION, PlanRequest(max_file_groups=1))
    assert isinstance(plan, Scheduled)
    execute(world.context(51), COMPACTION, plan.instant)
    # Nothing but buckets makes slices of logs alone; the index is another one from now on.
    assert sorted(slice_.base_file is None for slice_ in world.slices()) == [False, True]
    update_properties(world.storage, {f"{SETTING_PREFIX}hoodie.index.type": "SIMPLE"})
    clustered(world)
    assert len(world.slices()) == 1
    assert world.rows() == world.rows(use_metadata=False) == contents(shape, many)
