"""Scheduling: a draft is published only while what it names is there."""

from contextlib import suppress
from functools import partial

import pytest

from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.planning.plan_request import Draft, PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, draft, schedule, still_holds
from lakewarden.engine.testing.fault_plan import FaultPlan
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.transaction.rollback_request import rollback
from lakewarden.engine.transaction.state.context import load_for_writing
from tests.engine.services.service_table import ServiceWorld, inserted, new_service_world, updated
from tests.engine.transaction.hooked import Hook
from tests.writing.shapes import Shape


class DyingOnceInvisible(FaultyStorage):
    """Dies as soon as a completed write is not to be seen any more."""

    def delete(self, path: str) -> bool:
        is_there = super().delete(path)
        if path.endswith(".deltacommit"):
            raise Crashed("It is gone from the timeline.")
        return is_there


def rolled_back(world: ServiceWorld, instant: str) -> None:
    """Roll a write back, unless the lock is held."""
    with suppress(Conflict):
        rollback(world.context(51, hoodie__write__lock__wait_time_ms=0), instant)


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_draft_is_made_anew_where_a_rollback_takes_what_it_looks_at(*, dry_run: bool) -> None:
    at, is_over = 1, False
    while not is_over:
        world = new_service_world(Shape("mor"), inserted(2), updated(2), updated(2, 3))
        newest = max(one.requested for one in world.snapshot().timeline.active.completed())
        hook = Hook(at, partial(rolled_back, world, newest))
        context = world.context(50, storage=hook.storage(world.storage))
        found = (draft if dry_run else schedule)(context, COMPACTION, PlanRequest())
        assert isinstance(found, (Draft, Scheduled)), f"after call {at}"
        at, is_over = at + 1, not hook.has_happened
    assert at > 5


def test_a_draft_does_not_hold_once_a_write_under_it_begins_to_be_rolled_back() -> None:
    world = new_service_world(Shape("mor", has_metadata=False), inserted(2), updated(2))
    before = world.snapshot()
    drafted = COMPACTION.draft(world.context(50), before, PlanRequest())
    assert isinstance(drafted, Draft)
    assert still_holds(drafted, before, world.snapshot())
    newest = max(one.requested for one in before.timeline.active.completed())
    dying = DyingOnceInvisible(world.storage, FaultPlan(), world.clock)
    with pytest.raises(Crashed):
        rollback(world.context(51, storage=dying), newest)
    assert not still_holds(drafted, before, load_for_writing(world.context(52)))
