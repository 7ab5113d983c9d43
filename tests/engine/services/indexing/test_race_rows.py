"""Races of a build with others, each forced at the step that decides it, end in a true index."""

from contextlib import suppress

import pytest

from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.indexing.run_build import run_build
from lakewarden.engine.services.indexing.schedule_build import schedule_build
from lakewarden.engine.testing.faults import Crashed
from tests.crash.dying_operations import DEAD_AFTER_MS
from tests.engine.services.indexing.builds_kit import (
    CLEAN_BEGUN,
    FIRST_BASE_FILE,
    LAST_NOTE,
    RECORDS,
    WRITE_BEGUN,
    Before,
    assert_gone,
    assert_true,
    at,
    pending_builds,
    with_file_lock,
)
from tests.engine.services.indexing.indexed_tables import indexed
from tests.engine.services.service_table import (
    COW,
    MOR,
    ServiceWorld,
    inserted,
    new_service_world,
    row,
    updated,
)
from tests.writing.model import Write
from tests.writing.shapes import Shape, carry_out

HISTORY = (inserted(), updated(), Write("upsert", (row("n1", 3), row("k2", 3))))
MORE = Write("upsert", (row("x1", 9), row("k1", 9, "b")))
# Before each lock that a build takes, and while it makes base files.
STEPS = [0, 1, 2, FIRST_BASE_FILE, LAST_NOTE, 3, 4]
COMPLETED = r"^/\.hoodie/timeline/\d{17}_\d{17}\.indexing$"


def scheduled(world: ServiceWorld) -> str:
    return schedule_build(world.context(60), RECORDS).instant


def run(world: ServiceWorld, storage: object = None) -> object:
    (instant,) = pending_builds(world)
    return run_build(world.context(61, storage), instant)  # type: ignore[arg-type]


def die() -> None:
    raise Crashed


@pytest.mark.parametrize("shape", [COW, MOR], ids=str)
def test_a_writer_that_commits_after_an_indexer_died_with_the_index_listed(shape: Shape) -> None:
    world = new_service_world(shape, *HISTORY)
    scheduled(world)

    def build() -> None:
        with pytest.raises(Crashed):
            run(world, Before(world.storage, world.clock, COMPLETED, die))
        world.clock.advance(DEAD_AFTER_MS)

    # It began with the build in sight, and waits in its middle until the builder is dead.
    with suppress(Conflict):
        carry_out(world.table(55, Before(world.storage, world.clock, WRITE_BEGUN, build)), MORE)
    world.write(MORE, Write("delete", (row("k2"),)))
    assert_true(world.table(70))
    assert not pending_builds(world)


@pytest.mark.parametrize("step", STEPS)
def test_a_restore_is_refused_during_a_build_and_names_it(step: str | int) -> None:
    world = with_file_lock(new_service_world(MOR, *HISTORY))
    target = world.snapshot().timeline.active.completed()[0].requested
    instant = scheduled(world)
    world.write(MORE)

    def go_back() -> None:
        with pytest.raises(InvalidRequest) as refused:
            world.table(65).restore(target)
        assert instant in str(refused.value)

    run(world, at(world, step, go_back))
    assert_true(world.table(71))
    assert world.table(72).restore(target).metadata_dropped == ("record_index",)
    run_build(world.context(63), scheduled(world))
    assert_true(world.table(73))


def test_a_restore_is_possible_once_a_build_was_called_off() -> None:
    world = new_service_world(MOR, *HISTORY)
    target = world.snapshot().timeline.active.completed()[0].requested
    world.table(64).cancel(scheduled(world), force=True)
    world.clock.advance(1000)
    assert world.table(65).restore(target).undone
    run_build(world.context(63), scheduled(world))
    assert_true(world.table(71))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    "write",
    [
        Write("overwrite_partitions", (row("z1", 9), row("k4", 9))),
        Write("delete_partitions", (), ("a",)),
    ],
    ids=str,
)
def test_groups_that_are_replaced_during_a_build_leave_no_entry(
    write: Write, step: str | int
) -> None:
    world = with_file_lock(new_service_world(MOR, *HISTORY))
    scheduled(world)
    run(world, at(world, step, lambda: world.write(write)))
    assert_true(world.table(71))


@pytest.mark.parametrize("step", STEPS)
def test_a_key_that_moves_during_a_build_has_one_entry(step: str | int) -> None:
    world = with_file_lock(new_service_world(Shape("mor", index="GLOBAL_SIMPLE"), *HISTORY))
    scheduled(world)
    moved = Write("upsert", (row("k1", 9, "a"), row("k2", 9, "b")))
    run(world, at(world, step, lambda: world.write(moved)))
    table = world.table(71)
    assert_true(table)
    keys = [key for key, _ in indexed(table)]
    assert len(keys) == len(set(keys))


def test_a_metadata_table_that_is_compacted_beside_a_build_keeps_the_deletes_of_its_logs() -> None:
    world = new_service_world(MOR, *HISTORY)
    world.table(62).set_settings({"hoodie.metadata.compact.max.delta.commits": "1"})
    scheduled(world)
    world.write(Write("delete", (row("k2"), row("k1", 1, "b"))))
    for _ in range(2):
        world.table(64).maintain_metadata()
        world.write(updated(2, 12))
    run(world)
    assert_true(world.table(71))


@pytest.mark.parametrize("step", [FIRST_BASE_FILE, LAST_NOTE, 3])
def test_a_clean_that_was_planned_before_a_build_and_runs_during_it(step: str | int) -> None:
    world = with_file_lock(new_service_world(COW, *HISTORY, updated(ts=10), updated(ts=11)))
    retained = {"hoodie__clean__commits__retained": 1}
    with pytest.raises(Crashed):
        clean(world.context(40, Before(world.storage, world.clock, CLEAN_BEGUN, die), **retained))
    world.clock.advance(DEAD_AFTER_MS)
    scheduled(world)
    stage = at(world, step, lambda: world.table(65).clean(only_pending=True))
    with suppress(Conflict):
        run(world, stage)
    if not world.table(70).config.has_metadata("record_index"):
        assert_gone(world)
        run_build(world.context(63), scheduled(world))
    assert_true(world.table(71))
    assert len(world.rows()) == len(world.rows(use_metadata=False))
