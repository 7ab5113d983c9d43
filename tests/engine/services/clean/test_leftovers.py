"""What a clean takes away of instants that have ended, and what it leaves while it is of use."""

from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.timeline.heartbeats import standard_path
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.ledger.ledger import instants_with_ledger
from lakewarden.engine.transaction.attempts.publish import publish, to_inflight
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.state.markers import (
    MarkedFile,
    MarkerKind,
    leave_marker,
    read_markers,
)
from tests.crash.dying_operations import DEAD_AFTER_MS, SWEPT_AFTER_MS, killed
from tests.engine.services.service_table import ServiceWorld, inserted, new_service_world, updated
from tests.writing.shapes import Shape

LISTING = Shape("mor", has_metadata=False)


def planned(world: ServiceWorld, seed: int) -> str:
    done = schedule(world.context(seed), COMPACTION, PlanRequest(cancellable=True))
    assert isinstance(done, Scheduled)
    world.clock.advance(1000)
    return done.instant


def failed_write(world: ServiceWorld) -> str:
    """A write that announced a file, and was never heard of again."""
    context = world.context(70)
    attempt = publish(context, Action.DELTA_COMMIT, claims=True).attempt
    assert attempt is not None
    to_inflight(context, attempt)
    file = MarkedFile("p=a", f"f_0-0-1_{attempt.instant}.parquet")
    leave_marker(world.storage, attempt.instant, file, MarkerKind.CREATE)
    world.clock.advance(DEAD_AFTER_MS)
    return attempt.instant


def test_a_failed_write_is_undone_and_forgotten_once_its_sweep_is_done() -> None:
    world = new_service_world(LISTING, inserted(2))
    failed = failed_write(world)
    done = clean(world.context(50))
    assert [one.instant for one in done.settled] == [failed]
    assert failed in instants_with_ledger(world.storage), "its sweep is yet to come"
    world.clock.advance(SWEPT_AFTER_MS)
    done = clean(world.context(51))
    assert [one.instant for one in done.swept] == [failed]
    assert failed not in instants_with_ledger(world.storage)
    assert done.remains_deleted == 1


def test_a_clean_that_dies_while_it_forgets_a_ledger_leaves_one_that_the_next_forgets() -> None:
    before = new_service_world(LISTING, inserted(2))
    failed = failed_write(before)
    clean(before.context(50))
    before.clock.advance(SWEPT_AFTER_MS)
    deaths = killed(before, lambda world, stage: clean(world.context(51, stage)))
    assert len(deaths) > 5
    for death in deaths.values():
        clean(death.world.context(52))
        assert failed not in instants_with_ledger(death.world.storage), str(death)


def test_the_ledger_of_a_cancelled_plan_stays_until_its_partitions_are_planned_again() -> None:
    world = new_service_world(LISTING, inserted(2), updated(2))
    execute(world.context(58), COMPACTION, planned(world, 59))
    world.write(updated(2, ts=3))
    plan = planned(world, 60)
    cancel(world.context(61), plan, "not now")
    world.clock.advance(SWEPT_AFTER_MS)
    clean(world.context(50))
    clean(world.context(51))
    assert plan in instants_with_ledger(world.storage)
    execute(world.context(62), COMPACTION, planned(world, 63))
    world.clock.advance(1000)
    clean(world.context(52))
    assert plan not in instants_with_ledger(world.storage)


def test_markers_and_signs_of_life_of_what_has_ended_go_and_those_of_the_living_stay() -> None:
    world = new_service_world(LISTING, inserted(2))
    ended = world.table(97).timeline().completed()[-1].requested
    file = MarkedFile("p=a", f"f_0-0-1_{ended}.parquet")
    leave_marker(world.storage, ended, file, MarkerKind.CREATE)
    world.storage.put(standard_path(ended), b"")
    world.clock.advance(DEAD_AFTER_MS)
    lazy = {"hoodie__clean__failed__writes__policy": "LAZY"}
    context = world.context(70, **lazy)
    living = publish(context, Action.DELTA_COMMIT, claims=True).attempt
    assert living is not None
    leave_marker(world.storage, living.instant, file, MarkerKind.CREATE)
    clean(world.context(50, **lazy))
    assert read_markers(world.storage, ended) is None
    assert world.storage.stat(standard_path(ended)) is None
    assert read_markers(world.storage, living.instant) is not None
    assert world.storage.stat(standard_path(living.instant)) is not None
