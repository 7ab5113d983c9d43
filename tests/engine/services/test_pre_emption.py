"""Preemption at scheduling: cancellable plans make room for one that is not."""

from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.planning.plan_request import PlanRequest, Refusal
from lakewarden.engine.services.planning.schedule import Scheduled, TableService, draft, schedule
from lakewarden.engine.timeline.heartbeats import standard_path
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.start import start
from tests.engine.services.service_table import (
    FLAT_MOR,
    ServiceWorld,
    contents,
    inserted,
    new_service_world,
    updated,
)

HISTORY = (inserted(), updated())
SOFT, HARD = PlanRequest(cancellable=True), PlanRequest(cancellable=False)


def world_with_logs() -> ServiceWorld:
    return new_service_world(FLAT_MOR, *HISTORY)


def scheduled(world: ServiceWorld, service: TableService, plan_request: PlanRequest) -> Scheduled:
    answer = schedule(world.context(), service, plan_request)
    assert isinstance(answer, Scheduled), answer
    return answer


def pending(world: ServiceWorld) -> list[str]:
    return [instant.requested for instant in world.snapshot().timeline.active.pending()]


def test_a_cancellable_plan_makes_room_for_one_that_is_not() -> None:
    world = world_with_logs()
    soft = scheduled(world, COMPACTION, SOFT)
    hard = scheduled(world, COMPACTION, HARD)
    assert hard.preempted == (soft.instant,)
    assert hard.draft.groups == soft.draft.groups
    assert pending(world) == [hard.instant]
    execute(world.context(), COMPACTION, hard.instant)
    assert world.logs() == 0
    assert world.rows() == contents(FLAT_MOR, *HISTORY)


def test_a_plan_of_another_service_makes_room_as_well() -> None:
    world = world_with_logs()
    context = world.context(
        hoodie__clustering__plan__strategy__single__group__clustering__enabled="true"
    )
    soft = schedule(context, CLUSTERING, SOFT)
    assert isinstance(soft, Scheduled), soft
    hard = scheduled(world, COMPACTION, HARD)
    assert hard.preempted == (soft.instant,)


def test_one_that_is_cancellable_itself_has_to_wait() -> None:
    world = world_with_logs()
    soft = scheduled(world, COMPACTION, SOFT)
    assert isinstance(schedule(world.context(), COMPACTION, SOFT), Refusal)
    assert pending(world) == [soft.instant]


def test_one_that_is_not_cancellable_stays() -> None:
    world = world_with_logs()
    hard = scheduled(world, COMPACTION, HARD)
    assert isinstance(schedule(world.context(), COMPACTION, HARD), Refusal)
    assert pending(world) == [hard.instant]


def test_a_live_attempt_gives_way_and_one_by_java_does_not() -> None:
    world = world_with_logs()
    soft = scheduled(world, COMPACTION, SOFT)
    attempt: Attempt | None = start(world.context(51), soft.instant).attempt
    assert attempt is not None
    hard = scheduled(world, COMPACTION, HARD)
    assert hard.preempted == (soft.instant,)
    # Its attempt has not seen it yet, and removes what it has made.
    assert pending(world) == [soft.instant, hard.instant]

    world = world_with_logs()
    soft = scheduled(world, COMPACTION, SOFT)
    world.storage.put(standard_path(soft.instant), b"")
    assert isinstance(schedule(world.context(), COMPACTION, HARD), Refusal)
    assert pending(world) == [soft.instant]


def test_a_dry_run_shows_the_plan_and_cancels_nothing() -> None:
    world = world_with_logs()
    soft = scheduled(world, COMPACTION, SOFT)
    shown = draft(world.context(), COMPACTION, HARD)
    assert not isinstance(shown, Refusal)
    assert shown.groups == soft.draft.groups
    assert pending(world) == [soft.instant]
