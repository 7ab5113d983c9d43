"""A live write wins over cancellable plans from its announcement on, at each call of the plan.

The plan is executed until a call, then a write announces its file groups and stays alive. Whatever
the plan has looked at by then, it must not complete, or the write would be lost.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import pytest

from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.log_compaction.service import LOG_COMPACTION
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, TableService, schedule
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from tests.engine.services.service_table import ServiceWorld, inserted, new_service_world, updated
from tests.engine.transaction.hooked import Hook
from tests.rfc.live_writes import LiveWrite
from tests.rfc.plans import places
from tests.writing.shapes import Shape

CLUSTERED_ALONE = {"hoodie__clustering__plan__strategy__single__group__clustering__enabled": "true"}
FOLDED_SOON = {"hoodie__log__compaction__blocks__threshold": 2}


@dataclass(frozen=True)
class Rival:
    """A plan that stands in the way of a write, on a table of some type."""

    service: TableService
    shape: Shape
    options: dict[str, object]

    def __str__(self) -> str:
        return f"{self.service.service.value}-{self.shape}"

    def planned(self) -> tuple[ServiceWorld, str]:
        history = [inserted(), updated(), updated(ts=3)]
        world = new_service_world(self.shape, *history)
        scheduled = schedule(
            world.context(**self.options), self.service, PlanRequest(cancellable=True)
        )
        assert isinstance(scheduled, Scheduled), scheduled
        world.clock.advance(1000)
        return world, scheduled.instant


RIVALS = [
    Rival(CLUSTERING, Shape("cow", is_partitioned=False), CLUSTERED_ALONE),
    Rival(CLUSTERING, Shape("mor", is_partitioned=False), CLUSTERED_ALONE),
]
# Logs that come behind a slice stay valid in these.
HARMLESS = [
    Rival(COMPACTION, Shape("mor", is_partitioned=False), {}),
    Rival(LOG_COMPACTION, Shape("mor", is_partitioned=False), FOLDED_SOON),
]


def calls_of(rival: Rival) -> int:
    world, plan = rival.planned()
    counting = Hook(1 << 30, lambda: None)
    execute(world.context(70, counting.storage(world.storage)), rival.service, plan)
    return counting.calls


@pytest.mark.parametrize("rival", RIVALS, ids=str)
def test_a_plan_never_completes_over_an_announced_write(rival: Rival) -> None:
    for at in places(1, calls_of(rival)):
        world, plan = rival.planned()
        write, open_at = LiveWrite(world), []
        hook = Hook(at, partial(announce_over, world, plan, write, open_at))
        with suppress(Conflict):
            execute(world.context(70, hook.storage(world.storage)), rival.service, plan)
        is_committed = read_ledger(world.storage, plan).ends_in is LedgerEnd.COMMITTED
        assert is_committed != open_at[0], f"announced at call {at}"


def announce_over(world: ServiceWorld, plan: str, write: LiveWrite, open_at: list[bool]) -> None:
    """Have a write announce its file groups; whether the plan had not committed by then."""
    open_at.append(read_ledger(world.storage, plan).ends_in is not LedgerEnd.COMMITTED)
    write.announce()


@pytest.mark.parametrize("rival", HARMLESS, ids=str)
def test_a_plan_whose_slices_take_later_logs_completes_beside_it(rival: Rival) -> None:
    world, plan = rival.planned()
    LiveWrite(world).announce()
    execute(world.context(70), rival.service, plan)
    assert read_ledger(world.storage, plan).ends_in is LedgerEnd.COMMITTED
