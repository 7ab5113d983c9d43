"""Races of a build with others, each forced at the step that decides it, end in a true index.

The numbers are those of the races that the protocol has to stand. 1, 2, 5, 8, 9 and 13 to 15 are in
`test_beside_writers.py`. Of those with Java, 17 and 21 to 23 are played here by what Java does to
the files, 19 and 20 on tables that were frozen in the middle (`test_java_builds.py`), and all that
need no Java standing still by a running one (`tests/interop/test_builds_beside_java.py`).
"""

import re
from contextlib import suppress

import pytest

from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.metadata.building.create import add_partitions
from lakewarden.engine.metadata.writing.builds import BuildDone, read_notes
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.indexing.gather import gather
from lakewarden.engine.services.indexing.run_build import run_build
from lakewarden.engine.services.indexing.schedule_build import schedule_build
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.transaction.state.context import reload_under_lock
from tests.crash.dying_operations import DEAD_AFTER_MS
from tests.engine.services.indexing.builds_kit import (
    CLEAN_BEGUN,
    FIRST_BASE_FILE,
    INDEX,
    LAST_NOTE,
    RECORDS,
    WRITE_BEGUN,
    Before,
    BeforeReading,
    Unknowing,
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
METADATA = ".hoodie/metadata/.hoodie/timeline"
NUMBER = re.compile(r"/(0{14}\d{3})[._]")
# The entry in the ledger of a write that decides.
COMMITTED = re.compile(r"/ledger/\d{17}/000002\.json$")
COMPLETED = r"^/\.hoodie/timeline/\d{17}_\d{17}\.indexing$"


def scheduled(world: ServiceWorld) -> str:
    return schedule_build(world.context(60), RECORDS).instant


def run(world: ServiceWorld, storage: object = None) -> object:
    (instant,) = pending_builds(world)
    return run_build(world.context(61, storage), instant)  # type: ignore[arg-type]


def die() -> None:
    raise Crashed


def logs(world: ServiceWorld) -> set[str]:
    """The logs of the index."""
    files = world.storage.walk(".hoodie/metadata/record_index")
    return {one.path for one in files if ".log." in one.path}


@pytest.mark.parametrize("shape", [COW, MOR], ids=str)
def test_race_3_a_writer_commits_after_an_indexer_died_with_the_index_listed(shape: Shape) -> None:
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
def test_race_6_a_restore_during_a_build_ends_it_and_names_the_index(step: str | int) -> None:
    world = with_file_lock(new_service_world(MOR, *HISTORY))
    target = world.snapshot().timeline.active.completed()[0].requested
    scheduled(world)
    world.write(MORE)
    answers = []
    with pytest.raises((Conflict, InvalidRequest), match=r"restored|gone|ended|cancelled"):
        run(world, at(world, step, lambda: answers.append(world.table(65).restore(target))))
    (answer,) = answers
    assert answer.metadata_dropped == ("record_index",)
    assert_gone(world)
    world.write(MORE)
    run_build(world.context(63), scheduled(world))
    assert_true(world.table(73))


def test_race_6_a_restore_that_dies_while_it_ends_a_build_is_finished_by_the_next() -> None:
    def planned() -> tuple[ServiceWorld, str]:
        world = new_service_world(MOR, *HISTORY)
        target = world.snapshot().timeline.active.completed()[0].requested
        scheduled(world)
        return world, target

    world, target = planned()
    watched = FaultyStorage(world.storage)
    world.table(64, watched).restore(target)
    ending = re.compile(r"record_index|builds|indexing|hoodie\.properties$")
    steps = [
        one.number
        for one in watched.calls
        if one.operation in ("put", "delete", "delete_folder") and ending.search(one.path)
    ]
    assert len(steps) > 5
    for number in steps[::2]:
        world, target = planned()
        plan = FaultPlan((Fault(number, FaultKind.FAIL_AFTER, is_fatal=True),))
        with pytest.raises(Crashed):
            world.table(64, FaultyStorage(world.storage, plan)).restore(target)
        world.clock.advance(DEAD_AFTER_MS)
        world.table(65).restore(target)
        assert_gone(world)


def test_a_dry_run_of_a_restore_names_the_index_that_is_being_built() -> None:
    world = new_service_world(MOR, *HISTORY)
    target = world.snapshot().timeline.active.completed()[0].requested
    instant = scheduled(world)
    would = world.table(64).restore(target, dry_run=True)
    assert (would.metadata_dropped, would.obstacles) == (("record_index",), ())
    assert pending_builds(world) == [instant]


def test_race_6_a_restore_is_possible_once_a_build_was_called_off() -> None:
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
def test_race_10_groups_that_are_replaced_during_a_build_leave_no_entry(
    write: Write, step: str | int
) -> None:
    world = with_file_lock(new_service_world(MOR, *HISTORY))
    scheduled(world)
    run(world, at(world, step, lambda: world.write(write)))
    assert_true(world.table(71))


@pytest.mark.parametrize("step", STEPS)
def test_race_11_a_key_that_moves_during_a_build_has_one_entry(step: str | int) -> None:
    world = with_file_lock(new_service_world(Shape("mor", index="GLOBAL_SIMPLE"), *HISTORY))
    scheduled(world)
    moved = Write("upsert", (row("k1", 9, "a"), row("k2", 9, "b")))
    run(world, at(world, step, lambda: world.write(moved)))
    table = world.table(71)
    assert_true(table)
    keys = [key for key, _ in indexed(table)]
    assert len(keys) == len(set(keys))


def test_race_12_a_compaction_of_the_metadata_table_keeps_deletes_for_a_build() -> None:
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
def test_race_7_a_clean_that_was_planned_before_a_build_and_runs_during_it(step: str | int) -> None:
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


@pytest.mark.parametrize("is_built_first", [True, False])
def test_race_4_a_writer_that_reported_and_died_before_it_committed(is_built_first: bool) -> None:
    world = new_service_world(MOR, *HISTORY)
    scheduled(world)
    before, rehearsal = logs(world), world.copy()
    seen = FaultyStorage(rehearsal.storage, FaultPlan(), rehearsal.clock)
    carry_out(rehearsal.table(55, seen), MORE)
    (last,) = (one.number for one in seen.calls if COMMITTED.search(one.path))
    plan = FaultPlan((Fault(last, FaultKind.FAIL_BEFORE, is_fatal=True),))
    with suppress(Crashed):
        carry_out(world.table(55, FaultyStorage(world.storage, plan, world.clock)), MORE)
    reported = logs(world) - before
    world.clock.advance(DEAD_AFTER_MS)
    if is_built_first:
        run(world)
        assert_true(world.table(70))
    world.write(Write("upsert", (row("x2", 9),)))
    if not is_built_first:
        run(world)
    assert_true(world.table(71))
    assert reported
    assert not reported & logs(world)
    assert "x1" not in {key for key, _ in indexed(world.table(72))}


def test_race_16_a_drop_beside_a_reader_that_goes_by_the_index() -> None:
    world = new_service_world(MOR, *HISTORY)
    run_build(world.context(63), scheduled(world))
    without = world.table(64).read_arrow(filter="id in ('k1', 'k2')", use_metadata=False)
    first = r"/record_index/"
    stage = BeforeReading(world.storage, world.clock, first, lambda: drop(world))
    found = world.table(65, stage).read_arrow(filter="id in ('k1', 'k2')")
    assert stage.has_done_it
    assert found.sort_by("id").equals(without.sort_by("id"))


def drop(world: ServiceWorld) -> None:
    world.table(66).drop_index(INDEX)


@pytest.mark.parametrize("step", [None, 1, FIRST_BASE_FILE, LAST_NOTE, 3, 4])
def test_race_17_a_writer_that_does_not_look_for_builds(step: str | int | None) -> None:
    world = with_file_lock(new_service_world(MOR, *HISTORY))
    scheduled(world)

    def write() -> None:
        world.clock.advance(1000)
        carry_out(world.table(66, Unknowing(world.storage, clock=world.clock)), MORE)

    if step is None:
        write()
        run(world)
    else:
        run(world, at(world, step, write))
    assert_true(world.table(71))


@pytest.mark.parametrize("step", [1, FIRST_BASE_FILE, LAST_NOTE, 3, 4])
def test_race_21_the_file_groups_are_removed_in_the_middle(step: str | int) -> None:
    world = with_file_lock(new_service_world(MOR, *HISTORY))
    scheduled(world)

    def remove() -> None:
        world.storage.delete_folder(".hoodie/metadata/record_index")

    with suppress(Conflict):
        run(world, at(world, step, remove))
    if not world.table(70).config.has_metadata(INDEX):
        assert_gone(world)
        world.clock.advance(1000)
        run_build(world.context(63), scheduled(world))
    assert_true(world.table(71))


@pytest.mark.parametrize("step", [1, FIRST_BASE_FILE, LAST_NOTE, 3, 4])
def test_race_22_another_engine_makes_the_index_meanwhile(step: str | int) -> None:
    world = with_file_lock(new_service_world(MOR, *HISTORY))
    instant = scheduled(world)
    done = run(world, at(world, step, lambda: make(world)))
    assert isinstance(done, BuildDone)
    assert (done.instant, done.was_completed_before) == (instant, True)
    assert not pending_builds(world)
    assert_true(world.table(71))
    world.write(MORE)
    assert_true(world.table(72))
    assert not world.storage.walk(".hoodie/.lakewarden/builds")


def make(world: ServiceWorld) -> None:
    """The index as writers of Java's make it when they begin: anew, whatever is there."""
    context = world.context(66)
    with context.lock.hold():
        update_properties(world.storage, {"hoodie.table.metadata.partitions.inflight": ""})
        snapshot = reload_under_lock(context)
        found = gather(context, snapshot, RECORDS)
        add_partitions(
            world.storage,
            snapshot.config,
            [INDEX],
            found.present,
            snapshot.times,
            context.ports,
            located=found.located,
            choices=found.choices,
        )


def test_race_23_a_statement_of_java_takes_the_next_number() -> None:
    world = new_service_world(MOR, *HISTORY)
    taken: list[str] = []

    def take() -> None:
        last = max(one.path for one in world.storage.walk(METADATA) if NUMBER.search(one.path))
        number = NUMBER.search(last)
        assert number is not None
        taken.append(str(int(number[1]) + 1).zfill(17))
        world.storage.put(f"{METADATA}/{taken[0]}.deltacommit.requested", b"Java's")

    stage = Before(world.storage, world.clock, r"/0{14}\d{3}\.deltacommit\.requested$", take)
    instant = schedule_build(world.context(60, stage), RECORDS).instant
    notes = read_notes(world.storage, instant)
    assert notes is not None
    assert taken[0] not in (notes.groups_instant, notes.base_instant)
    run(world)
    assert_true(world.table(71))


def test_race_23_what_java_initialises_meanwhile_stays_as_long_as_it_gives_a_sign() -> None:
    world = new_service_world(MOR, *HISTORY)
    javas = f"{METADATA}/00000000000000077.deltacommit.requested"
    world.storage.put(javas, b"")
    world.storage.put(".hoodie/metadata/.hoodie/.heartbeat/00000000000000077", b"")
    first = scheduled(world)
    world.table(64).cancel(first, force=True)
    assert world.storage.stat(javas)
    world.clock.advance(DEAD_AFTER_MS)
    scheduled(world)
    assert not world.storage.stat(javas)
    run(world)
    assert_true(world.table(71))
