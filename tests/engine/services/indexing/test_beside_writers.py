"""Indexes built beside writers are those that writes would have kept, whoever acts in between."""

import pytest

from lakewarden.engine.kernel.errors import Conflict, InvalidRequest, LakewardenError
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.indexing.catch_up import CHECK_TIMEOUT_SECONDS
from lakewarden.engine.services.indexing.request import WantedIndex
from lakewarden.engine.services.indexing.run_build import run_build
from lakewarden.engine.services.indexing.schedule_build import schedule_build
from lakewarden.engine.services.inspection.state.blockers import blockers
from lakewarden.engine.transaction.cancel.cancel import Ending, cancel
from tests.crash.dying_operations import DEAD_AFTER_MS, killed
from tests.engine.services.indexing.builds_kit import (
    BASE_COMPLETE,
    FIRST_BASE_FILE,
    INDEX,
    LAST_NOTE,
    READY,
    RECORDS,
    SERVICE_BEGUN,
    WRITE_BEGUN,
    Before,
    assert_gone,
    assert_true,
    at,
    call_off_half_plans,
    pending_builds,
    with_file_lock,
)
from tests.engine.services.service_table import (
    COW,
    FLAT_MOR,
    MOR,
    ServiceWorld,
    inserted,
    new_service_world,
    row,
    updated,
)
from tests.sampling import IS_SIMULATION
from tests.writing.model import Write
from tests.writing.shapes import Shape, carry_out

DELETED = Write("delete", (row("k0"),))
HISTORY = (inserted(), updated(), Write("upsert", (row("n1", 3), row("k2", 3))), DELETED)
STATISTICS = (
    WantedIndex(
        partition="column_stats",
        columns=("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key", "id", "v"),
    ),
    WantedIndex(partition="partition_stats"),
)
MORE = Write("upsert", (row("x1", 9), row("k1", 9, "b")))
EVERY = 1 if IS_SIMULATION else 19
# Before each lock that a build takes, and while it makes base files.
STEPS = [0, 1, 2, FIRST_BASE_FILE, LAST_NOTE, 3, 4]


def scheduled(world: ServiceWorld) -> str:
    return schedule_build(world.context(60), RECORDS).instant


def run(world: ServiceWorld, storage: object = None, **settings: object) -> object:
    context = world.context(61, storage, **settings)  # type: ignore[arg-type]
    (instant,) = pending_builds(world)
    return run_build(context, instant)


@pytest.mark.parametrize("shape", [COW, MOR, FLAT_MOR], ids=str)
def test_writes_after_the_plan_report_to_the_build(shape: Shape) -> None:
    world = new_service_world(shape, *HISTORY)
    scheduled(world)
    world.write(MORE, Write("delete", (row("k2"),)))
    run(world)
    table = world.table(70)
    assert_true(table)
    world.write(Write("upsert", (row("x2", 9),)))
    assert_true(table)


def test_several_partitions_are_built_by_one_plan() -> None:
    world = new_service_world(MOR, *HISTORY)
    twin = new_service_world(MOR, *HISTORY)
    table = world.table(70)
    table.drop_index("column_stats")
    table.create_index("column_stats", ["id", "v"])
    table.create_index("partition_stats")
    twin.table(70).drop_index("column_stats")
    plan = schedule_build(twin.context(60), (*STATISTICS, *RECORDS))
    twin.write(MORE)
    world.write(MORE)
    run_build(twin.context(61), plan.instant)
    assert set(plan.partitions) <= set(twin.table(71).config.metadata_partitions)
    assert_true(twin.table(71))
    by_key = {(one.file_name, one.column) for one in table.column_statistics()}
    assert len(by_key) > 20
    assert len(twin.table(71).column_statistics()) == len(table.column_statistics())
    assert twin.rows() == world.rows(use_metadata=False)


@pytest.mark.parametrize("shape", [COW, MOR], ids=str)
@pytest.mark.parametrize(
    "write",
    [
        MORE,
        DELETED,
        Write("insert", (row("z1", 9), row("z2", 9, "b"))),
        Write("overwrite_partitions", (row("z1", 9), row("k4", 9))),
        Write("delete_partitions", (), ("a",)),
    ],
    ids=str,
)
def test_race_1_a_write_that_began_before_the_plan_is_caught_up_with(
    shape: Shape, write: Write
) -> None:
    world = new_service_world(shape, *HISTORY)
    stage = Before(world.storage, world.clock, WRITE_BEGUN, lambda: scheduled(world))
    carry_out(world.table(55, stage), write)
    assert stage.has_done_it
    run(world)
    assert_true(world.table(70))
    world.write(MORE)
    assert_true(world.table(71))


def test_a_write_that_has_not_ended_is_waited_for_and_the_build_goes_on_later() -> None:
    world = new_service_world(MOR, *HISTORY)

    def build() -> None:
        scheduled(world)
        with pytest.raises(Conflict) as waiting:
            run(world, **{CHECK_TIMEOUT_SECONDS.key.replace(".", "__"): 5})
        assert waiting.value.code == "index_waits"
        (writing,) = (
            one.requested
            for one in world.snapshot().timeline.active.pending()
            if one.action.is_write
        )
        assert waiting.value.parameters["waits_for"] == writing
        assert not world.table(69).config.has_metadata(INDEX)

    carry_out(world.table(55, Before(world.storage, world.clock, WRITE_BEGUN, build)), MORE)
    run(world)
    assert_true(world.table(70))


def test_a_clean_whose_process_died_is_ended_by_the_build() -> None:
    world = new_service_world(COW, *HISTORY, updated(ts=10), updated(ts=11))

    def die() -> None:
        raise KeyboardInterrupt

    stage = Before(world.storage, world.clock, r"metadata/.*\.deltacommit\.requested$", die)
    with pytest.raises(KeyboardInterrupt):
        clean(world.context(55, stage, hoodie__clean__commits__retained=1))
    scheduled(world)
    world.clock.advance(DEAD_AFTER_MS)
    run(world)
    assert not world.snapshot().timeline.active.pending()
    assert_true(world.table(70))


@pytest.mark.parametrize("service", ["compaction", "clustering"])
def test_races_8_and_9_a_service_that_began_before_the_plan_is_caught_up_with(service: str) -> None:
    world = new_service_world(MOR, *HISTORY)
    stage = Before(world.storage, world.clock, SERVICE_BEGUN, lambda: scheduled(world))
    getattr(world.table(55, stage), service).schedule_and_run()
    assert stage.has_done_it
    run(world)
    assert_true(world.table(70))


@pytest.mark.parametrize("step", STEPS)
def test_race_2_a_write_in_any_step_is_in_the_index(step: str | int) -> None:
    world = with_file_lock(new_service_world(MOR, *HISTORY))
    scheduled(world)
    stage = at(world, step, lambda: world.write(MORE))
    run(world, stage)
    assert stage.has_done_it
    assert_true(world.table(70))


@pytest.mark.parametrize("operation", ["schedule", "build"])
def test_a_death_at_any_call_leaves_a_build_that_goes_on(operation: str) -> None:
    before = new_service_world(COW, *HISTORY)
    if operation == "build":
        scheduled(before)

    def build(world: ServiceWorld, stage: object) -> object:
        if operation == "build":
            return run(world, stage)
        return schedule_build(world.context(60, stage), RECORDS)  # type: ignore[arg-type]

    deaths = killed(before, build, every=EVERY)  # type: ignore[arg-type]
    for death in deaths.values():
        world = death.world
        assert isinstance(world, ServiceWorld)
        world.clock.advance(DEAD_AFTER_MS)
        assert world.rows() == before.rows(), death
        world.write(MORE)
        if not world.table(59).config.has_metadata(INDEX):
            plan = schedule_build(world.context(62), RECORDS)
            run_build(world.context(63), plan.instant)
        assert_true(world.table(70))
        call_off_half_plans(world, death.plan)
        world.write(Write("upsert", (row("x7", 9),)))
        assert_true(world.table(71))
        world.table(72).clean()
        assert not world.storage.walk(".hoodie/.lakewarden/builds"), death


def test_finished_file_groups_are_kept() -> None:
    world = new_service_world(MOR, *HISTORY)
    scheduled(world)
    seen: list[set[str]] = []

    def die() -> None:
        files = world.storage.walk(".hoodie/metadata/record_index")
        seen.append({one.path for one in files if one.path.endswith(".hfile")})
        raise LakewardenError("gone", what="It died.", why="Of a test.", now="Nothing.")

    world = with_file_lock(world)
    with pytest.raises(LakewardenError):
        run(world, at(world, 3, die))
    run(world)
    files = {one.path for one in world.storage.walk(".hoodie/metadata/record_index")}
    assert seen[0]
    assert {one for one in files if one.endswith(".hfile")} == seen[0]
    assert_true(world.table(70))


@pytest.mark.parametrize("step", STEPS)
def test_race_15_a_cancelled_build_makes_nothing_visible_and_leaves_nothing(
    step: str | int,
) -> None:
    world = with_file_lock(new_service_world(MOR, *HISTORY))
    instant = scheduled(world)

    def stop() -> None:
        assert cancel(world.context(65), instant, "not wanted").outcome is Ending.CANCELLED
        assert_gone(world)

    with pytest.raises(LakewardenError) as stopped:
        run(world, at(world, step, stop))
    assert stopped.value.code in ("cancelled", "unknown_plan")
    assert_gone(world)
    world.clock.advance(1000)
    run_build(world.context(67), scheduled(world))
    assert_true(world.table(70))


def test_race_15_a_build_that_has_committed_is_not_cancelled() -> None:
    world = with_file_lock(new_service_world(MOR, *HISTORY))
    instant = scheduled(world)

    def stop() -> None:
        world.clock.advance(DEAD_AFTER_MS)
        done = cancel(world.context(65), instant, "not wanted")
        assert done.outcome is Ending.ALREADY_COMMITTED

    stage = at(world, READY, stop)
    run(world, stage)
    assert_true(world.table(70))


@pytest.mark.parametrize("step", [FIRST_BASE_FILE, LAST_NOTE, 3, BASE_COMPLETE, 4])
def test_race_14_a_builder_that_wakes_up_late_changes_nothing(step: str | int) -> None:
    world = with_file_lock(new_service_world(MOR, *HISTORY))
    scheduled(world)

    def overtake() -> None:
        world.clock.advance(DEAD_AFTER_MS)
        run(world)

    with pytest.raises(LakewardenError):
        run(world, at(world, step, overtake))
    assert_true(world.table(70))
    world.write(MORE)
    assert_true(world.table(71))


@pytest.mark.parametrize("step", [*STEPS, "completed"])
def test_race_5_a_rollback_of_what_the_base_holds_leaves_no_untrue_index(step: str | int) -> None:
    world = with_file_lock(new_service_world(MOR, *HISTORY))
    newest = world.snapshot().timeline.active.completed()[-1].requested
    scheduled(world)
    if step == "completed":
        run(world)
        world.table(65).rollback(newest)
        assert not world.table(70).config.has_metadata(INDEX)
    else:
        with pytest.raises(LakewardenError):
            run(world, at(world, step, lambda: world.table(65).rollback(newest)))
        assert_gone(world)
    world.clock.advance(1000)
    run_build(world.context(63), scheduled(world))
    assert_true(world.table(71))
    world.write(DELETED, MORE)
    assert_true(world.table(72))


@pytest.mark.parametrize("step", STEPS)
def test_race_5_a_rollback_of_what_came_later_takes_it_out_again(step: str | int) -> None:
    world = with_file_lock(new_service_world(MOR, *HISTORY))
    scheduled(world)
    world.write(MORE)
    newest = world.snapshot().timeline.active.completed()[-1].requested
    run(world, at(world, step, lambda: world.table(65).rollback(newest)))
    assert_true(world.table(71))


def test_race_13_two_schedules_of_one_index_are_one_plan_and_of_two_are_two() -> None:
    world = new_service_world(MOR, *HISTORY)
    first = scheduled(world)
    assert scheduled(world) == first
    world.table(70).drop_index("column_stats")
    other = schedule_build(world.context(64), STATISTICS[:1]).instant
    assert pending_builds(world) == [first, other]
    run_build(world.context(65), other)
    run_build(world.context(65), first)
    assert_true(world.table(70))


def test_all_pending_builds_are_carried_out_but_for_those_that_others_end() -> None:
    world = new_service_world(MOR, *HISTORY)
    world.table(59).drop_index("column_stats")
    first = scheduled(world)
    second = schedule_build(world.context(60), STATISTICS[:1]).instant

    def others_cancel() -> None:
        assert cancel(world.context(63), second, "in time").outcome is Ending.CANCELLED

    stage = Before(world.storage, world.clock, FIRST_BASE_FILE, others_cancel)
    assert world.table(61, stage).run_indexing([]) == ()
    assert [one.instant for one in world.table(61, stage).run_indexing()] == [first]
    assert_true(world.table(70))


def test_a_pending_build_is_a_plan_that_is_not_reset() -> None:
    world = new_service_world(MOR, *HISTORY)
    instant = scheduled(world)
    table = world.table(61)
    assert [one.instant for one in table.plans()] == [instant]
    for removes_plan in (False, True):
        with pytest.raises(InvalidRequest) as refused:
            table.reset_plan(instant, removes_plan=removes_plan)
        assert refused.value.code == "not_reset"
        assert "resume" in str(refused.value)


def test_race_13_another_definition_takes_the_place_of_a_dead_build_only() -> None:
    world = new_service_world(MOR, *HISTORY)
    scheduled(world)
    shards = (WantedIndex(partition=INDEX, is_partitioned=True),)

    def rival() -> None:
        with pytest.raises(Conflict) as held:
            schedule_build(world.context(64), shards)
        assert held.value.code == "index_being_built"
        raise LakewardenError("gone", what="It died.", why="Of a test.", now="Nothing.")

    with pytest.raises(LakewardenError):
        run(world, at(world, FIRST_BASE_FILE, rival))
    plan = schedule_build(world.context(64), shards)
    assert len(plan.superseded) == 1
    run_build(world.context(65), plan.instant)
    assert_true(world.table(70))
    assert pending_builds(world) == []


def test_an_index_in_flight_can_be_dropped_beside_writers() -> None:
    world = new_service_world(MOR, *HISTORY)
    scheduled(world)
    stage = at(world, WRITE_BEGUN, lambda: world.table(64).drop_index(INDEX))
    carry_out(world.table(55, stage), MORE)
    assert stage.has_done_it
    assert_gone(world)


def test_rows_that_cannot_be_indexed_end_the_build() -> None:
    world = new_service_world(MOR, *HISTORY, Write("upsert", (row("k1", 4, "a"),)))
    with pytest.raises(InvalidRequest) as refused:
        run_build(world.context(61), scheduled(world))
    assert refused.value.code == "repeated_keys"
    assert_gone(world)


def test_a_build_holds_back_a_clean_for_a_bounded_time_and_blockers_names_it() -> None:
    world = new_service_world(COW, *HISTORY)
    instant = scheduled(world)
    world.write(*(updated(ts=10 + number) for number in range(3)))
    retained = world.context(60, hoodie__clean__commits__retained=1)
    assert clean(retained).held_by == instant
    (held,) = (one for one in blockers(retained) if one.instant == instant)
    assert (held.blocked_service, held.action) == ("clean", "indexing")
    assert instant in held.remedy_sql
    short = {"lakewarden.clean.build_wait_seconds".replace(".", "__"): 1}
    assert not blockers(world.context(64, hoodie__clean__commits__retained=1, **short))
    world.clock.advance(2 * 3_600_000)
    assert clean(retained).files_deleted
    with pytest.raises(Conflict) as undone:
        run(world)
    assert undone.value.code == "index_build_undone"
    assert_gone(world)
    run_build(world.context(62), scheduled(world))
    assert_true(world.table(70))


def test_what_was_reported_to_a_dropped_index_is_not_taken_for_reported_to_the_new_one() -> None:
    world = new_service_world(FLAT_MOR, *HISTORY)
    scheduled(world)
    run(world)
    # The base of the new one ends before the pending plan, and so before the write.
    assert world.table(62).compaction.schedule(cancellable=True)
    world.write(MORE)
    world.table(63).drop_index("record_index")
    scheduled(world)
    run(world)
    assert_true(world.table(70))
