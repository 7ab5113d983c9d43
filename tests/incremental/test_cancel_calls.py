"""What cancelling costs: a plan for hundreds of file groups as much as one for a few."""

import pytest

from lakewarden.engine.plans.cancel import acknowledge, cancel
from lakewarden.engine.plans.cancellation import Cleanup, Ending
from lakewarden.engine.plans.start import start
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.schedule import Scheduled, schedule
from lakewarden.engine.services.wish import Wish
from lakewarden.engine.storage.faults import FaultyStorage
from tests.engine.services.worlds import ServiceWorld
from tests.incremental.names_only import LARGE, Names, empty_table

FEW, MANY = 5, 300
CALLS_MAX = 40


def planned(groups: int) -> tuple[ServiceWorld, str]:
    """A table with a plan for so many file groups, each in a partition of its own."""
    world = empty_table()
    table = Names(world)
    table.write(range(groups), size=LARGE)
    table.write(range(groups), logs=True)
    plan = schedule(world.context(), COMPACTION, Wish(cancellable=True))
    assert isinstance(plan, Scheduled)
    assert len(plan.draft.groups) == groups
    return world, plan.instant


def calls_of_cancel(groups: int, *, is_begun: bool) -> int:
    world, plan = planned(groups)
    if is_begun:
        start(world.context(51), plan)
    watched = FaultyStorage(world.storage)
    answer = acknowledge(world.context(52, watched), plan, "backfill first")
    assert answer.outcome is Ending.CANCELLED
    assert len(answer.handed_back) == groups
    return len(watched.calls)


@pytest.mark.parametrize("is_begun", [False, True], ids=["requested", "inflight"])
def test_a_cancel_is_acknowledged_in_a_few_calls_however_large_the_plan(is_begun: bool) -> None:
    calls = calls_of_cancel(MANY, is_begun=is_begun)
    assert calls == calls_of_cancel(FEW, is_begun=is_begun)
    assert calls <= CALLS_MAX


def test_a_large_plan_that_nobody_has_begun_is_off_the_timeline_without_a_look_at_its_files() -> (
    None
):
    world, plan = planned(MANY)
    watched = FaultyStorage(world.storage)
    answer = cancel(world.context(52, watched), plan, "backfill first")
    assert answer.cleanup is Cleanup.DONE
    assert not [str(call) for call in watched.calls if not call.path.startswith(".hoodie/")]
