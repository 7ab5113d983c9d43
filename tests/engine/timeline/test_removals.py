"""What two looks at a timeline say of files that may have gone in between."""

import pytest

from lakewarden import Conflict, Table
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.read.query.answer import naming_removals
from lakewarden.engine.read.query.plan_query import Query, plan_query
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.removals import removals_between
from lakewarden.engine.transaction.cancel.cancel import cancel
from tests.crash.dying_operations import DEAD_AFTER_MS, ports
from tests.engine.services.service_table import (
    MOR,
    ServiceWorld,
    inserted,
    new_service_world,
    updated,
)
from tests.histories.tables import TableKind


def table_of(kind: TableKind) -> Table:
    clock = ManualClock()
    return kind.create(fresh_memory_storage(clock=clock), ports(clock, 1))


def row(v: int) -> dict[str, object]:
    return {"id": "k", "p": "a", "ts": v, "v": v, "name": None, "n": v, "d": None}


@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_a_table_of_which_every_write_is_savepointed_is_written_to(type_: str) -> None:
    table = table_of(TableKind(type_, has_metadata=False))
    table.upsert([row(1)])
    table.savepoint()
    table.upsert([row(2)])
    assert table.read_arrow(["v"])["v"].to_pylist() == [2]


def test_what_was_known_and_is_archived_may_have_lost_files() -> None:
    table = table_of(TableKind(has_metadata=False))
    table.upsert([row(1)])
    before = table.timeline()
    for v in range(2, 9):
        table.upsert([row(v)])
    options = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    table.archive(options={**options, "hoodie.clean.commits.retained": "1"})
    assert removals_between(before, table.timeline()) == before.completed()


def test_a_plan_whose_rollback_was_known_already_takes_its_file_away() -> None:
    world = new_service_world(MOR, inserted(), updated())
    plan = schedule(world.context(), COMPACTION, PlanRequest(cancellable=True))
    assert isinstance(plan, Scheduled)
    begin_rollback(world, plan.instant)
    snapshot = load_snapshot(world.storage)
    world.clock.advance(DEAD_AFTER_MS)
    world.table(53).rollback_failed_writes()
    assert world.snapshot().pending(plan.instant) is None
    # A reader that begins anew finds a table without the plan.
    with pytest.raises(Conflict) as raised, naming_removals(snapshot):
        plan_query(snapshot, Query(None, None))
    assert raised.value.code == "files_vanished"
    assert raised.value.parameters["removed_by"] == (plan.instant,)


def begin_rollback(world: ServiceWorld, plan: str) -> None:
    """Cancel a plan, and die right after its rollback is on the timeline."""
    rehearsal = world.copy()
    calls = FaultyStorage(rehearsal.storage, FaultPlan(), rehearsal.clock)
    cancel(rehearsal.context(51, calls), plan, "not now")
    published = next(call for call in calls.calls if call.path.endswith(".rollback.requested"))
    death = FaultPlan((Fault(published.number, FaultKind.FAIL_AFTER, is_fatal=True),))
    storage = FaultyStorage(world.storage, death, world.clock)
    with pytest.raises(Crashed):
        cancel(world.context(51, storage), plan, "not now")
    assert world.table(52).timeline().pending((Action.ROLLBACK,))
