"""A live write wins over cancellable plans from its announcement on, at each call of the plan.

The plan is executed until a call, then a write announces its file groups and stays alive. Whatever
the plan has looked at by then, it must not complete, or the write would be lost.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.log_compaction.service import LOG_COMPACTION
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, TableService, schedule
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.testing.fault_plan import FaultPlan
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from tests.engine.services.service_table import ServiceWorld, inserted, new_service_world, updated
from tests.engine.transaction.hooked import Hook
from tests.rfc.live_writes import LATEST, LiveWrite
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
        return world, scheduled_on(world, self)


def scheduled_on(world: ServiceWorld, rival: "Rival") -> str:
    """The instant of a cancellable plan."""
    request = PlanRequest(cancellable=True)
    scheduled = schedule(world.context(**rival.options), rival.service, request)
    assert isinstance(scheduled, Scheduled), scheduled
    world.clock.advance(1000)
    return scheduled.instant


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


WRITES: dict[str, Callable[[Table], object]] = {
    "upsert": lambda table: table.upsert(LATEST.table(), options=NO_WAIT),
    "overwrite": lambda table: table.overwrite(LATEST.table(), options=NO_WAIT),
    "delete": lambda table: table.delete(LATEST.table(), options=NO_WAIT),
}
NO_WAIT = {"hoodie.write.lock.wait_time_ms": "1", "hoodie.write.lock.num_retries": "0"}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("rival", [*RIVALS, *HARMLESS], ids=str)
def test_a_write_commits_at_whichever_of_its_calls_the_plan_is_executed(
    rival: Rival, name: str
) -> None:
    write = WRITES[name]
    first, last = calls_after_announcing(rival, write)
    for at in places(first, last):
        world, plan = rival.planned()
        context = world.context(70)
        lock = open_lock(world.storage, Settings.of(arguments=NO_WAIT), context.ports)
        context = replace(context, lock=lock)
        executed = partial(execute, context, rival.service, plan)
        hook = Hook(at, partial(ended_by_conflict, executed))
        write(world.table(60, hook.storage(world.storage)))
        is_committed = read_ledger(world.storage, plan).ends_in is LedgerEnd.COMMITTED
        assert not is_committed or (rival in HARMLESS and name != "overwrite"), at
        assert world.strays() == set()


def ended_by_conflict(execute_plan: Callable[[], object]) -> None:
    """A plan gives way, or has to wait for the lock of a write that commits."""
    with suppress(Conflict):
        execute_plan()


def calls_after_announcing(rival: Rival, write: Callable[[Table], object]) -> tuple[int, int]:
    """The call by which a write has announced itself, and its last one."""
    world, _ = rival.planned()
    stage = FaultyStorage(world.storage, FaultPlan(), world.clock)
    write(world.table(60, stage))
    calls = [call for call in stage.calls if call.path.startswith(".hoodie/timeline/")]
    announced = next(call.number for call in calls if call.path.endswith(".inflight"))
    return announced, len(stage.calls)


@pytest.mark.parametrize("rival", RIVALS, ids=str)
def test_a_plan_stops_within_a_second_of_an_announcement(rival: Rival) -> None:
    shape = replace(rival.shape, is_partitioned=True)
    world = new_service_world(shape, inserted(8, partitions="abcdefgh"))
    plan = scheduled_on(world, rival)
    write = LiveWrite(world)
    made: list[str] = []

    def begins_a_file(operation: str, path: str) -> None:
        if operation == "put" and path.startswith(f".hoodie/.temp/{plan}/"):
            made.append(path)
            if len(made) == 2:
                write.announce()
                world.clock.advance(1_000)

    stage = Listening(world.storage, begins_a_file)
    with pytest.raises(Conflict) as caught:
        execute(world.context(70, cast(Storage, stage)), rival.service, plan)
    assert caught.value.code == "plan_conflict"
    assert len(made) == 2
    assert read_ledger(world.storage, plan).ends_in is LedgerEnd.CANCELLED


@pytest.mark.parametrize("rival", RIVALS, ids=str)
def test_a_plan_gives_way_before_its_first_file_to_a_write_that_has_announced(
    rival: Rival,
) -> None:
    world, plan = rival.planned()
    LiveWrite(world).announce()
    made: list[str] = []
    stage = Listening(world.storage, lambda operation, path: made.append(f"{operation} {path}"))
    with pytest.raises(Conflict, match="is under way"):
        execute(world.context(70, cast(Storage, stage)), rival.service, plan)
    assert not [call for call in made if call.startswith(f"put .hoodie/.temp/{plan}/")]


class Listening:
    """A storage whose calls are heard before they are made."""

    def __init__(self, inner: Storage, heard: Callable[[str, str], None]) -> None:
        self._inner, self._heard = inner, heard

    def __getattr__(self, name: str) -> object:
        found = getattr(self._inner, name)
        return partial(self._called, name, found) if callable(found) else found

    def _called(self, name: str, found: Callable[..., object], *arguments: object) -> object:
        self._heard(name, str(arguments[0]) if arguments else "")
        return found(*arguments)
