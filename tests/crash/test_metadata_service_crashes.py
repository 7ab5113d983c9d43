"""The metadata table's services die at any storage call, and it says the same before and after."""

import os
from contextlib import suppress
from functools import cache

import pytest

from lakewarden.engine.metadata.reading.table import load_metadata_table
from lakewarden.engine.services.metadata_table.service import (
    MetadataMaintenance,
    MetadataService,
    maintain_metadata_table,
)
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import load_config
from lakewarden.engine.testing.fault_plan import FaultPlan, crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from tests.crash.dying_operations import DEAD_AFTER_MS
from tests.engine.services.service_table import (
    MOR,
    ServiceWorld,
    contents,
    inserted,
    new_service_world,
    updated,
)
from tests.writing.model import Write

IS_SIMULATION = "LAKEWARDEN_KILLS" in os.environ
# Every so many places to die at, unless all of them are wanted.
STRIDE, PARTS = (4, range(4)) if IS_SIMULATION else (29, range(1))
CLEAN, COMPACTION, LOG_COMPACTION, _ = MetadataService
SETTINGS = {
    "hoodie__metadata__derive__from__datatable__clean__policy": False,
    "hoodie__clean__commits__retained": 1,
    "hoodie__keep__min__commits": 2,
    "hoodie__keep__max__commits": 3,
    "hoodie__metadata__log__compaction__blocks__threshold": 4,
}
HISTORY = (inserted(2), *(updated(2, ts=number) for number in range(2, 8)))
NEXT = updated(2, ts=20)


def maintain(
    world: ServiceWorld, seed: int, storage: Storage | None, service: MetadataService
) -> MetadataMaintenance:
    context = world.context(seed, storage, **SETTINGS)
    return maintain_metadata_table(context, services=(service,))


@cache
def _prepared() -> ServiceWorld:
    """A metadata table with old slices, and enough new logs."""
    world = new_service_world(MOR)
    for number, write in enumerate(HISTORY):
        world.write(write)
        if number in (1, 2):
            maintain(world, 40 + number, None, COMPACTION)
            world.clock.advance(1000)
    return world


def assert_truth(world: ServiceWorld, *more: Write, death: str) -> None:
    expected = contents(MOR, *HISTORY, *more)
    assert world.rows() == expected, f"{death}: rows differ"
    assert world.rows(use_metadata=False) == expected, f"{death}: rows differ by listing"
    assert world.differences_of_listings() == set(), f"{death}: files that are not there"


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("service", [CLEAN, COMPACTION, LOG_COMPACTION])
def test_a_service_that_dies_leaves_the_metadata_table_true(
    service: MetadataService, part: int
) -> None:
    before = _prepared()
    rehearsal = before.copy()
    faulty = FaultyStorage(rehearsal.storage, FaultPlan(), rehearsal.clock)
    assert maintain(rehearsal, 50, faulty, service)
    plans = list(crash_plans(faulty.calls))
    assert len(plans) > 20
    for plan in plans[part::STRIDE]:
        death = f"{service}, replay with plan {str(plan)!r}"
        for writes_first in (True, False):
            world = before.copy()
            # Whatever is written from now on has other ids than the history.
            world.clock.advance(200_000)
            with suppress(Crashed):
                maintain(world, 50, FaultyStorage(world.storage, plan, world.clock), service)
            assert_truth(world, death=death)
            world.clock.advance(DEAD_AFTER_MS)
            if writes_first:
                world.write(NEXT)
            maintain(world, 70, None, service)
            if not writes_first:
                world.write(NEXT)
            assert_truth(world, NEXT, death=death)
            state = load_metadata_table(world.storage, load_config(world.storage))
            assert not state.timeline.active.pending(), f"{death}: something is still pending"
