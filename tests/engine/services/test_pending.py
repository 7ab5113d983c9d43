"""Pending plans that others end while they are being carried out one after the other."""

from lakewarden.engine.plans.cancel import cancel
from lakewarden.engine.plans.context import Context
from lakewarden.engine.services.choice import Reason
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.pending import RunLimits, run_pending
from lakewarden.engine.services.schedule import Scheduled, schedule
from lakewarden.engine.services.wish import Wish
from tests.engine.services.worlds import MOR, ServiceWorld, inserted, new_service_world, updated


def world_with_plan() -> tuple[ServiceWorld, str]:
    world = new_service_world(MOR, inserted(), updated())
    done = schedule(world.context(), COMPACTION, Wish(cancellable=True))
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
    assert world.moment().pending(plan) is None
