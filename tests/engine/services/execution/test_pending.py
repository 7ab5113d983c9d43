"""Pending plans that others end while they are being carried out one after the other."""

import pytest

from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import RunLimits, run_pending
from lakewarden.engine.services.planning.plan_request import PlanRequest, Reason
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.state.context import Context
from tests.engine.services.service_table import (
    MOR,
    ServiceWorld,
    inserted,
    new_service_world,
    updated,
)
from tests.engine.transaction.just_before import JustBefore


def world_with_plan() -> tuple[ServiceWorld, str]:
    world = new_service_world(MOR, inserted(), updated())
    done = schedule(world.context(), COMPACTION, PlanRequest(cancellable=True))
    assert isinstance(done, Scheduled)
    return world, done.instant


def test_a_plan_that_ends_between_the_look_and_its_turn_is_no_failure() -> None:
    world, plan = world_with_plan()

    def cancelled_by_others(instant: str) -> Context:
        cancel(world.context(51), instant, "others were quicker")
        return world.context(52)

    result = run_pending(world.context(), COMPACTION, RunLimits(), cancelled_by_others)
    assert result.executions == result.failures == ()
    assert result.refusal is not None
    assert result.refusal.reason is Reason.NOTHING_TO_DO
    assert world.logs() > 0
    assert world.snapshot().pending(plan) is None


def test_a_plan_that_is_taken_back_between_schedule_and_run_has_given_way() -> None:
    world = new_service_world(MOR, inserted(), updated())

    def others_cancel() -> None:
        (plan,) = world.table(51).compaction.pending()
        plan.cancel("not now")

    # The lock is taken once to publish the plan, and then to start it.
    storage = JustBefore(world.storage, world.clock, others_cancel, nth=1)
    options = {"hoodie.write.lock.provider": "filesystem"}
    with pytest.raises(Conflict) as raised:
        world.table(52, storage).compaction.schedule_and_run(cancellable=True, options=options)
    assert raised.value.code == "plan_cancelled"
    assert world.logs() > 0
