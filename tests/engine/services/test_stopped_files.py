"""Whoever is cancelled while it reads what a file is made of makes no such file."""

import pytest

from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, TableService, schedule
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.transaction.attempts.attempt import LOOK_EVERY_SECONDS
from lakewarden.engine.transaction.cancel.cancel import Ending, acknowledge
from tests.engine.services.service_table import COW, MOR, inserted, new_service_world, updated
from tests.engine.transaction.hooked import Hook
from tests.writing.shapes import Shape

SORTED = {"hoodie__clustering__plan__strategy__sort__columns": "name"}


@pytest.mark.parametrize(
    ("service", "shape", "arguments"),
    [
        pytest.param(COMPACTION, MOR, {}, id="compaction"),
        pytest.param(CLUSTERING, COW, SORTED, id="clustering"),
    ],
)
def test_rows_that_are_read_after_a_cancel_go_into_no_file(
    service: TableService, shape: Shape, arguments: dict[str, object]
) -> None:
    world = new_service_world(shape, inserted(partitions="a"), updated(partitions="a"))
    plan = schedule(world.context(50, **arguments), service, PlanRequest(cancellable=True))
    assert isinstance(plan, Scheduled)
    (slice_,) = world.slices()
    assert slice_.base_file is not None

    def cancel() -> None:
        assert acknowledge(world.context(52), plan.instant, "").outcome is Ending.CANCELLED
        world.clock.advance(1000 * LOOK_EVERY_SECONDS)

    watched = FaultyStorage(world.storage)
    hook = Hook(1, cancel, of=("open", slice_.path(slice_.base_file)))
    with pytest.raises(Conflict):
        execute(world.context(51, hook.storage(watched), **arguments), service, plan.instant)
    assert hook.has_happened
    assert not [str(call) for call in watched.calls if call.operation == "create"]
