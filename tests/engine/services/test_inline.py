"""Services after a write: which of them run, in which order, and what becomes of failures."""

from dataclasses import replace

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest, Unsettled
from lakewarden.engine.metadata.reading.table import load_metadata_table
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import pending_plans
from lakewarden.engine.services.inline import AfterWrite, after_write
from lakewarden.engine.services.metadata_table.service import (
    MetadataService,
    maintain_metadata_table,
)
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.table.config import load_config
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.timeline.instants.instant import Instant
from lakewarden.engine.transaction.start import start
from lakewarden.engine.write.request import Commit
from tests.engine.services.service_table import (
    COW,
    MOR,
    ServiceWorld,
    inserted,
    new_service_world,
    updated,
)

COMMIT = Commit(instant="20231114221320000", completed="20231114221321000", operation="UPSERT")
OFF = {"hoodie__clean__automatic": "false", "hoodie__archive__automatic": "false"}
ON = dict.fromkeys(OFF, "true")
COMPACT = {**OFF, "hoodie__compact__inline": "true"}
SCHEDULE = {**OFF, "hoodie__compact__schedule__inline": "true"}
AT_ONCE = {"hoodie__compact__inline__max__delta__commits": "1"}
CLUSTER = {
    **OFF,
    "hoodie__clustering__inline": "true",
    "hoodie__clustering__inline__max__commits": "1",
}
BAD_STRATEGY = {**COMPACT, **AT_ONCE, "hoodie__compaction__strategy": "NoSuchThing"}
REPORTED = {"hoodie__fail__writes__on__inline__table__service__exception": "false"}


def world_with_logs() -> ServiceWorld:
    return new_service_world(MOR, inserted(), updated())


def tend(world: ServiceWorld, **settings: str) -> AfterWrite:
    return after_write(world.context(**settings), COMMIT)


def plan(world: ServiceWorld, *, cancellable: bool = False) -> str:
    done = schedule(world.context(60), COMPACTION, PlanRequest(cancellable=cancellable))
    assert isinstance(done, Scheduled)
    return done.instant


def names(done: AfterWrite) -> list[str]:
    return [one.service for one in done.tended]


def test_writes_clean_and_archive_if_they_are_told_to() -> None:
    world = world_with_logs()
    assert names(tend(world)) == []
    assert names(tend(world, **ON)) == ["clean", "archive"]


def test_cleaning_and_archiving_may_be_left_to_jobs_of_their_own() -> None:
    left = {"hoodie__clean__async__enabled": "true", "hoodie__archive__async": "true"}
    assert names(tend(world_with_logs(), **ON, **left)) == []


def test_all_services_can_be_switched_off_together() -> None:
    off = {"hoodie__table__services__enabled": "false"}
    assert names(tend(world_with_logs(), **{**COMPACT, **AT_ONCE, **off})) == []


def test_services_run_in_the_order_of_hudi() -> None:
    done = tend(
        world_with_logs(),
        **ON,
        hoodie__compact__inline="true",
        hoodie__log__compaction__inline="true",
        hoodie__clustering__schedule__inline="true",
    )
    order = ["clean", "archive", "compaction", "log_compaction", "clustering"]
    assert names(done) == order


def test_a_compaction_that_is_due_is_scheduled_and_carried_out() -> None:
    world = world_with_logs()
    (done,) = tend(world, **COMPACT, **AT_ONCE).tended
    assert len(done.instants) == 1
    assert world.logs() == 0


def test_a_compaction_that_is_not_due_waits() -> None:
    world = world_with_logs()
    (done,) = tend(world, **COMPACT).tended
    assert done.instants == ()
    assert "waits for 5 delta commits" in (done.why_nothing or "")
    assert world.logs() > 0


def test_what_others_have_left_is_carried_out_first() -> None:
    world = world_with_logs()
    left = plan(world)
    (done,) = tend(world, **COMPACT).tended
    assert done.instants == (left,)
    assert world.logs() == 0


def test_a_plan_may_be_left_for_others_and_no_second_one_is_made_while_it_waits() -> None:
    world = world_with_logs()
    (done,) = tend(world, **SCHEDULE, **AT_ONCE).tended
    assert pending_plans(world.context(), COMPACTION) == done.instants
    world.write(updated(ts=3))
    (again,) = tend(world, **SCHEDULE, **AT_ONCE).tended
    assert again.instants == ()
    assert done.instants[0] in (again.why_nothing or "")


def test_a_clustering_that_is_due_is_carried_out() -> None:
    world = new_service_world(COW, inserted())
    (done,) = tend(world, **CLUSTER).tended
    assert len(done.instants) == 1


def test_logs_are_compacted_into_one_where_that_is_asked_for() -> None:
    world = new_service_world(MOR, inserted(), updated(ts=2), updated(ts=3))
    wanted = {"hoodie__log__compaction__inline": "true"}
    few = {"hoodie__log__compaction__blocks__threshold": "2"}
    (done,) = tend(world, **OFF, **wanted, **few).tended
    assert world.snapshot().completed_write(done.instants[0]) is not None


def test_a_failure_is_raised_as_an_error_that_says_that_the_write_is_committed() -> None:
    with pytest.raises(Unsettled, match="is committed, but its compaction") as raised:
        tend(world_with_logs(), **BAD_STRATEGY)
    assert raised.value.code == "inline_service_failed"
    assert isinstance(raised.value.__cause__, InvalidRequest)


def test_a_failure_may_be_told_by_the_commit_instead() -> None:
    done = tend(world_with_logs(), **BAD_STRATEGY, **REPORTED)
    (error,) = done.commit.errors
    assert "NoSuchThing" in error
    assert done.commit.instant == COMMIT.instant


def test_a_service_that_fails_does_not_keep_the_others_from_their_work() -> None:
    world = world_with_logs()
    done = tend(world, **{**BAD_STRATEGY, **CLUSTER}, **REPORTED)
    assert [bool(one.instants) for one in done.tended] == [False, True]


def test_that_somebody_else_was_quicker_is_told_and_not_raised() -> None:
    world = world_with_logs()
    started = start(world.context(61), plan(world, cancellable=True)).attempt
    assert started is not None
    started.stop()
    done = tend(world, **COMPACT)
    (error,) = done.commit.errors
    assert "was not started" in error


def test_who_is_interrupted_is_told_that_the_write_is_committed() -> None:
    world = world_with_logs()
    dying = FaultPlan((Fault(1, FaultKind.FAIL_BEFORE, is_fatal=True),))
    context = replace(world.context(70, **COMPACT), storage=FaultyStorage(world.storage, dying))
    with pytest.raises(Crashed) as raised:
        after_write(context, COMMIT)
    assert "is committed" in raised.value.__notes__[0]


def test_the_metadata_table_is_archived_with_the_table() -> None:
    few = {"hoodie__keep__min__commits": "2", "hoodie__keep__max__commits": "3"}
    few |= {"hoodie__clean__commits__retained": "1"}
    world = new_service_world(COW, inserted(2), *(updated(2, ts=n) for n in range(2, 14)))
    # Its first compaction came with a write; the second one lets go of what was before it.
    maintain_metadata_table(world.context(70), services=(MetadataService.COMPACTION,))
    world.clock.advance(1000)
    before = len(metadata_instants(world))
    done = tend(world, **ON, **few)
    assert [one.failure for one in done.tended] == [None, None]
    assert len(metadata_instants(world)) < before
    assert world.rows() == world.rows(use_metadata=False)


def metadata_instants(world: ServiceWorld) -> tuple[Instant, ...]:
    return load_metadata_table(world.storage, load_config(world.storage)).timeline.active.instants
