"""The cases of Hudi's design for asynchronous indexing, and its example of a timeline."""

import pytest

from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.metadata.writing.builds import BuildNotes, read_notes
from lakewarden.engine.services.indexing.catch_up import CHECK_TIMEOUT_SECONDS, to_catch_up_with
from lakewarden.engine.services.indexing.run_build import run_build
from lakewarden.engine.services.indexing.schedule_build import base_of, schedule_build
from lakewarden.engine.testing.faults import Crashed
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.attempts.publish import publish, to_inflight
from tests.crash.dying_operations import DEAD_AFTER_MS
from tests.engine.services.indexing.builds_kit import (
    INDEX,
    LAST_NOTE,
    RECORDS,
    WRITE_BEGUN,
    Before,
    assert_true,
    at,
    pending_builds,
    with_file_lock,
)
from tests.engine.services.service_table import (
    MOR,
    ServiceWorld,
    inserted,
    new_service_world,
    row,
    updated,
)
from tests.writing.model import Write
from tests.writing.shapes import carry_out

HISTORY = (inserted(), updated())
MORE = Write("upsert", (row("x1", 9), row("k1", 9, "b")))
IN_FIVE_SECONDS = {CHECK_TIMEOUT_SECONDS.key.replace(".", "__"): 5}


def die() -> None:
    raise Crashed


def notes_of(world: ServiceWorld, instant: str) -> BuildNotes:
    notes = read_notes(world.storage, instant)
    assert notes is not None
    return notes


def test_case_1_a_writer_fails_while_the_index_is_built() -> None:
    world = new_service_world(MOR, *HISTORY)
    plan = schedule_build(world.context(60), RECORDS)
    failing = Before(world.storage, world.clock, r"record_index/.*\.log\.1_", die)
    with pytest.raises(Crashed):
        carry_out(world.table(55, failing), MORE)
    run_build(world.context(61), plan.instant)
    assert_true(world.table(70))
    world.clock.advance(DEAD_AFTER_MS)
    world.write(Write("upsert", (row("x2", 9),)))
    assert_true(world.table(71))


def test_case_2_the_indexer_fails_while_a_writer_is_at_work() -> None:
    world = new_service_world(MOR, *HISTORY)
    plan = schedule_build(world.context(60), RECORDS)
    with pytest.raises(Crashed):
        run_build(
            world.context(61, Before(world.storage, world.clock, LAST_NOTE, die)), plan.instant
        )
    world.write(MORE)
    assert not world.table(69).config.has_metadata(INDEX)
    world.clock.advance(DEAD_AFTER_MS)
    run_build(world.context(62), plan.instant)
    assert_true(world.table(70))


def test_case_3a_a_writer_begins_after_the_request_and_before_the_build() -> None:
    world = new_service_world(MOR, *HISTORY)
    plan = schedule_build(world.context(60), RECORDS)
    world.write(MORE)
    run_build(world.context(61), plan.instant)
    assert_true(world.table(70))


def test_case_3b_a_writer_commits_right_before_the_index_is_ready() -> None:
    world = with_file_lock(new_service_world(MOR, *HISTORY))
    plan = schedule_build(world.context(60), RECORDS)
    stage = at(world, 4, lambda: world.write(MORE))
    run_build(world.context(61, stage), plan.instant)
    assert_true(world.table(70))


def test_case_3c_a_writer_commits_while_the_index_is_being_scheduled() -> None:
    world = new_service_world(MOR, *HISTORY)
    groups = Before(world.storage, world.clock, r"record-index-0004-0_.*\.log\.1_0-0-0$", die)
    with pytest.raises(Crashed):
        schedule_build(world.context(60, groups), RECORDS)
    world.clock.advance(DEAD_AFTER_MS)
    world.write(MORE)
    (instant,) = pending_builds(world)
    run_build(world.context(61), instant)
    assert_true(world.table(70))


@pytest.mark.parametrize("service", ["compaction", "clustering"])
def test_case_4_services_leave_an_index_in_flight_alone_and_report_to_it(service: str) -> None:
    world = new_service_world(MOR, *HISTORY)
    plan = schedule_build(world.context(60), RECORDS)
    groups = {one.path for one in world.storage.walk(".hoodie/metadata/record_index")}
    for _ in range(12):
        world.write(updated(2, ts=8))
    getattr(world.table(55), service).schedule_and_run()
    now = {one.path for one in world.storage.walk(".hoodie/metadata/record_index")}
    assert not {one for one in now - groups if one.endswith(".hfile")}
    run_build(world.context(61), plan.instant)
    assert_true(world.table(70))


def test_case_5_a_timeline_with_holes() -> None:
    """C1 to C4 are in the base; C5, which is inflight, and C6 to C8 are caught up with."""
    world = new_service_world(MOR, *HISTORY)
    world.write(Write("upsert", (row("x4", 9),)))
    found: list[str] = []

    def later() -> None:
        before = [one.requested for one in world.snapshot().timeline.active.completed()]
        for number in (6, 7, 8):
            world.write(Write("upsert", (row(f"x{number}", 9),)))
        found.append(schedule_build(world.context(60), RECORDS).instant)
        notes = notes_of(world, found[0])
        assert notes.upto == before[-1]
        assert len(notes.pending) == 1
        with pytest.raises(Conflict) as waiting:
            run_build(world.context(61, **IN_FIVE_SECONDS), found[0])
        assert waiting.value.parameters["waits_for"] == notes.pending[0]

    fifth = Write("upsert", (row("y5", 9, "b"),))
    carry_out(world.table(55, Before(world.storage, world.clock, WRITE_BEGUN, later)), fifth)
    run_build(world.context(62), found[0])
    assert_true(world.table(70))


def test_the_example_of_the_design_is_caught_up_with_in_its_order() -> None:
    """DC1 to DC3, CLEAN4 inflight, DC5, DC6, COMPACT7 requested, DC8, the plan, DC10 inflight."""
    world = new_service_world(MOR, *HISTORY, updated(ts=3))
    fourth = publish(world.context(40), Action.CLEAN, claims=True)
    assert fourth.attempt is not None
    to_inflight(world.context(40), fourth.attempt)
    world.write(updated(ts=4), updated(ts=5))
    sixth = world.snapshot().timeline.active.completed()[-1].requested
    seventh = world.table(41).compaction.schedule()
    world.write(Write("upsert", (row("x8", 9),)))
    eighth = world.snapshot().timeline.active.completed()[-1].requested
    upto, pending = base_of(world.snapshot())
    assert upto == sixth
    assert pending == (fourth.instant, seventh.instant)  # type: ignore[union-attr]
    plan = schedule_build(world.context(60), RECORDS)
    notes = notes_of(world, plan.instant)
    order = [one.instant.requested for one in to_catch_up_with(world.snapshot(), notes)]
    assert order == [fourth.instant, eighth]
