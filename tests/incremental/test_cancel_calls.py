"""What cancelling costs: a plan for hundreds of file groups as much as one for a few."""

import pytest

from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.transaction.cancel.cancel import Cleanup, Ending, acknowledge, cancel
from lakewarden.engine.transaction.start import start
from tests.engine.services.service_table import ServiceWorld
from tests.incremental.names_only import LARGE, Names, empty_table

FEW, MANY = 5, 300
CALLS_MAX = 40


def planned(groups: int) -> tuple[ServiceWorld, str]:
    """A table with a plan for so many file groups, each in a partition of its own."""
    world = empty_table()
    table = Names(world)
    table.write(range(groups), size=LARGE)
    table.write(range(groups), logs=True)
    plan = schedule(world.context(), COMPACTION, PlanRequest(cancellable=True))
    assert isinstance(plan, Scheduled)
    assert len(plan.draft.groups) == groups
    return world, plan.instant


def calls_of_cancel(groups: int, *, is_started: bool) -> int:
    world, plan = planned(groups)
    if is_started:
        start(world.context(51), plan)
    watched = FaultyStorage(world.storage)
    answer = acknowledge(world.context(52, watched), plan, "backfill first")
    assert answer.outcome is Ending.CANCELLED
    assert len(answer.handed_back) == groups
    return len(watched.calls)


@pytest.mark.parametrize("is_started", [False, True], ids=["requested", "inflight"])
def test_a_cancel_is_acknowledged_in_a_few_calls_however_large_the_plan(is_started: bool) -> None:
    calls = calls_of_cancel(MANY, is_started=is_started)
    assert calls == calls_of_cancel(FEW, is_started=is_started)
    assert calls <= CALLS_MAX


def test_a_large_plan_that_nobody_has_begun_is_off_the_timeline_without_a_look_at_its_files() -> (
    None
):
    world, plan = planned(MANY)
    watched = FaultyStorage(world.storage)
    answer = cancel(world.context(52, watched), plan, "backfill first")
    assert answer.cleanup is Cleanup.DONE
    assert not [str(call) for call in watched.calls if not call.path.startswith(".hoodie/")]
