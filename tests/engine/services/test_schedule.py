"""Scheduling: a draft is published only while what it names is there."""

import pytest

from lakewarden.engine.plans.moment import look
from lakewarden.engine.plans.rollback import rollback
from lakewarden.engine.services.choice import Draft
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.schedule import still_holds
from lakewarden.engine.services.wish import Wish
from lakewarden.engine.storage.fault_plan import FaultPlan
from lakewarden.engine.storage.faults import Crashed, FaultyStorage
from tests.engine.services.worlds import inserted, new_service_world, updated
from tests.writing.shapes import Shape


class DyingOnceInvisible(FaultyStorage):
    """Dies as soon as a completed write is not to be seen any more."""

    def delete(self, path: str) -> bool:
        is_there = super().delete(path)
        if path.endswith(".deltacommit"):
            raise Crashed("It is gone from the timeline.")
        return is_there


def test_a_draft_does_not_hold_once_a_write_under_it_begins_to_be_rolled_back() -> None:
    world = new_service_world(Shape("mor", has_metadata=False), inserted(2), updated(2))
    before = world.moment()
    drafted = COMPACTION.draft(world.context(50), before, Wish())
    assert isinstance(drafted, Draft)
    assert still_holds(drafted, before, world.moment())
    newest = max(one.requested for one in before.timeline.active.completed())
    dying = DyingOnceInvisible(world.storage, FaultPlan(), world.clock)
    with pytest.raises(Crashed):
        rollback(world.context(51, storage=dying), newest)
    assert not still_holds(drafted, before, look(world.context(52)))
