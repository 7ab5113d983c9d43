"""Rivals: what is pending, which of it is about the same file groups, and which gives way."""

import pytest

from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, Operation, WriteStat
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.inspection.state.rivals import RivalView, rivals
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.timeline.heartbeats import standard_path
from lakewarden.engine.write import operations
from tests.crash.dying_operations import DEAD_AFTER_MS
from tests.engine.services.service_table import COW, ServiceWorld, inserted, new_service_world, rows
from tests.rfc.live_writes import standing_write
from tests.writing.model import Write

SEVERAL = {"hoodie__write__concurrency__mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
ON = {**SEVERAL, "hoodie__write__concurrency__early__conflict__detection__enable": "true"}
STRATEGY = "hoodie__write__concurrency__early__conflict__detection__strategy"
ALONE = {"hoodie__clustering__plan__strategy__single__group__clustering__enabled": "true"}


def begun(world: ServiceWorld, *keys: str, **options: object) -> str:
    world.clock.advance(1000)
    request = operations.upsert(Write("upsert", rows(keys, 5)).table())
    return standing_write(world, request, **options)


def seen(world: ServiceWorld, **options: object) -> list[tuple[str, str | None, bool | None]]:
    return [(one.instant, one.rival, one.gives_way) for one in found(world, **options)]


def found(world: ServiceWorld, **options: object) -> tuple[RivalView, ...]:
    return rivals(world.context(80, **options))


@pytest.fixture
def world() -> ServiceWorld:
    """A table of one file group in each of two partitions."""
    return new_service_world(COW, inserted(4))


def test_a_table_at_rest_has_no_rivals(world: ServiceWorld) -> None:
    assert found(world, **ON) == ()


def test_of_two_writes_to_one_file_group_the_younger_gives_way(world: ServiceWorld) -> None:
    older, younger = begun(world, "k0"), begun(world, "k0")
    assert seen(world, **ON) == [(older, younger, False), (younger, older, True)]
    assert seen(world) == [(older, younger, None), (younger, older, None)]
    one = found(world, **ON)[0]
    assert (one.is_live, one.operation, one.file_groups) == (True, "UPSERT", 1)
    assert [key.partition for key in one.common] == ["p=a"]


def test_writes_to_other_file_groups_stand_alone(world: ServiceWorld) -> None:
    older = begun(world, "k0")
    world.clock.advance(1000)
    other = Write("upsert", rows(["k1"], 5, "b"))
    younger = standing_write(world, operations.upsert(other.table()))
    assert seen(world, **ON) == [(older, None, None), (younger, None, None)]


def test_the_dead_are_no_rivals_to_give_way_to(world: ServiceWorld) -> None:
    older = begun(world, "k0")
    world.clock.advance(DEAD_AFTER_MS)
    younger = begun(world, "k0", hoodie__clean__failed__writes__policy="NEVER")
    assert seen(world, **ON) == [(older, younger, False), (younger, older, False)]
    assert [one.is_live for one in found(world, **ON)] == [False, True]


def test_a_cancellable_plan_gives_way_to_a_live_write(world: ServiceWorld) -> None:
    scheduled = schedule(world.context(50, **ALONE), CLUSTERING, PlanRequest(cancellable=True))
    assert isinstance(scheduled, Scheduled)
    older, younger = scheduled.instant, begun(world, "k0")
    plan, write = found(world)
    assert (plan.instant, plan.rival, plan.gives_way) == (older, younger, True)
    assert (write.instant, write.rival, write.gives_way) == (younger, older, False)
    assert plan.is_cancellable


def test_a_write_gives_way_to_an_immutable_plan(world: ServiceWorld) -> None:
    older = begun(world, "k0")
    scheduled = schedule(world.context(50, **ALONE), CLUSTERING, PlanRequest(cancellable=False))
    assert isinstance(scheduled, Scheduled)
    write, plan = found(world)
    assert (write.instant, write.rival, write.gives_way) == (older, scheduled.instant, True)
    assert (plan.rival, plan.gives_way, plan.is_cancellable) == (older, False, False)


def test_a_live_overwrite_by_java_is_everyones_rival_in_its_partition(world: ServiceWorld) -> None:
    older = "20200101000000000"
    stat = WriteStat(file_id="", num_inserts=1)
    told = CommitMetadata(
        partition_to_write_stats={"p=a": (stat,)}, operation_type=Operation.INSERT_OVERWRITE
    )
    world.storage.put(f".hoodie/timeline/{older}.replacecommit.requested", b"")
    world.storage.put(f".hoodie/timeline/{older}.replacecommit.inflight", commit.encode(told))
    world.storage.put(standard_path(older), b"")
    younger = begun(world, "k0", **SEVERAL)
    theirs, ours = found(world, **ON)
    assert (theirs.owner, theirs.host, theirs.partitions) == ("Java Hudi", None, ("p=a",))
    assert (theirs.rival, theirs.gives_way) == (younger, False)
    assert (ours.rival, ours.gives_way, len(ours.common)) == (older, True, 1)
