"""A log compaction that dies at any storage call changes no row, and another one can be made."""

import os
from contextlib import suppress
from dataclasses import dataclass

import pytest

from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.services.execution.execute import execute, pending_plans
from lakewarden.engine.services.log_compaction.service import LOG_COMPACTION
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.testing.fault_plan import FaultPlan, crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.transaction.cancel.cancel import cancel
from tests.crash.dying_operations import DEAD_AFTER_MS, SWEPT_AFTER_MS
from tests.engine.services.service_table import (
    MOR,
    ServiceWorld,
    contents,
    inserted,
    new_service_world,
    row,
    updated,
)
from tests.writing.model import Write
from tests.writing.shapes import Shape

IS_SIMULATION = "LAKEWARDEN_KILLS" in os.environ
# Every so many places to die at, unless all of them are wanted.
STRIDE, PARTS = (4, range(4)) if IS_SIMULATION else (41, range(1))
THRESHOLD = {"hoodie__log__compaction__blocks__threshold": 3}
HISTORY = (
    inserted(4),
    updated(4, ts=2),
    Write("delete", (row("k3", 3, "b"), row("k2", 3, "a"))),
    updated(2, ts=4),
)
NEXT = updated(1, ts=9, partitions="a")
LAST = Write("upsert", (row("last", 10, "c"),))
SHAPES = (MOR, Shape("mor", is_partitioned=False, has_metadata=False))


@dataclass(frozen=True)
class Victim:
    """What dies: the making of a plan, the carrying out of one, or of one that is immutable."""

    name: str
    is_planned: bool
    is_cancellable: bool = True

    def prepare(self, world: ServiceWorld) -> None:
        if self.is_planned:
            planned(world, 40, is_cancellable=self.is_cancellable)
        world.clock.advance(1000)

    def live(self, world: ServiceWorld, storage: Storage) -> None:
        if self.is_planned:
            context = world.context(50, storage, **THRESHOLD)
            execute(context, LOG_COMPACTION, pending_plans(context, LOG_COMPACTION)[0])
        else:
            planned(world, 50, storage)


VICTIMS = (
    Victim("schedule", is_planned=False),
    Victim("execute", is_planned=True),
    Victim("execute immutable", is_planned=True, is_cancellable=False),
)


def planned(
    world: ServiceWorld, seed: int, storage: Storage | None = None, *, is_cancellable: bool = True
) -> str:
    plan_request = PlanRequest(cancellable=is_cancellable)
    answer = schedule(world.context(seed, storage, **THRESHOLD), LOG_COMPACTION, plan_request)
    assert isinstance(answer, Scheduled)
    return answer.instant


def finish(world: ServiceWorld) -> None:
    """Carry out what is pending, or cancel it where that is all that can be done."""
    context = world.context(70, **THRESHOLD)
    for instant in pending_plans(context, LOG_COMPACTION):
        try:
            execute(context, LOG_COMPACTION, instant)
        except Conflict as refusal:
            if refusal.code not in ("plan_not_executable", "plan_cancelled"):
                raise
            cancel(context, instant, "its attempt has died")


def assert_rows(world: ServiceWorld, shape: Shape, *writes: Write, death: str) -> None:
    expected = contents(shape, *writes)
    assert world.rows() == expected, f"{death}: rows differ"
    assert world.rows(use_metadata=False) == expected, f"{death}: rows differ by listing"


def assert_recovers(world: ServiceWorld, shape: Shape, death: str) -> None:
    assert_rows(world, shape, *HISTORY, death=death)
    world.clock.advance(DEAD_AFTER_MS)
    world.write(NEXT)
    assert_rows(world, shape, *HISTORY, NEXT, death=death)
    finish(world)
    assert_rows(world, shape, *HISTORY, NEXT, death=death)
    world.clock.advance(SWEPT_AFTER_MS)
    world.write(LAST)
    assert_rows(world, shape, *HISTORY, NEXT, LAST, death=death)
    assert world.strays() == set(), f"{death}: stray files"
    assert world.differences_of_listings() == set(), f"{death}: files that are not there"
    assert not world.table(62).timeline().pending(), f"{death}: something is still pending"


def killed(before: ServiceWorld, victim: Victim, plan: FaultPlan) -> ServiceWorld:
    """The world that a victim leaves which dies as planned."""
    world = before.copy()
    # Whatever is written from now on has other ids than the history.
    world.clock.advance(200_000)
    faulty = FaultyStorage(world.storage, plan, world.clock)
    with suppress(Crashed):
        victim.live(world, faulty)
    return world


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("victim", VICTIMS, ids=lambda victim: victim.name)
@pytest.mark.parametrize("shape", SHAPES if IS_SIMULATION else SHAPES[:1], ids=str)
def test_a_log_compaction_that_dies_changes_no_row(shape: Shape, victim: Victim, part: int) -> None:
    before = new_service_world(shape, *HISTORY)
    victim.prepare(before)
    rehearsal = before.copy()
    faulty = FaultyStorage(rehearsal.storage, FaultPlan(), rehearsal.clock)
    victim.live(rehearsal, faulty)
    plans = list(crash_plans(faulty.calls))
    assert len(plans) > 10
    for plan in plans[part::STRIDE]:
        world = killed(before, victim, plan)
        assert_recovers(world, shape, f"{victim.name}, replay with plan {str(plan)!r}")
