"""An index that is built anew serves reads until the swap, and is true after it, whoever acts."""

import pytest

from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.read.query.index_trust import IndexTrust
from lakewarden.engine.services.indexing.build import refresh_index
from lakewarden.engine.services.indexing.drop import drop_index
from lakewarden.engine.services.indexing.index_views import IndexState
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.transaction.cancel.cancel import Ending, cancel
from tests.crash.dying_operations import DEAD_AFTER_MS, killed, remembered
from tests.engine.services.indexing.builds_kit import (
    FIRST_BASE_FILE,
    INDEX,
    LAST_NOTE,
    assert_gone,
    assert_true,
    at,
    call_off_half_plans,
    pending_builds,
    with_file_lock,
)
from tests.engine.services.indexing.indexed_tables import homes, indexed
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
from tests.golden_tables import GoldenTable
from tests.procedures.calling import call
from tests.sampling import IS_SIMULATION
from tests.writing.model import Write
from tests.writing.shapes import Shape

DELETED = Write("delete", (row("k0"),))
HISTORY = (inserted(), updated(), DELETED)
MORE = Write("upsert", (row("x1", 9), row("k1", 9, "b"), row("k0", 9)))
# Before each lock, and while base files are made.
STEPS = [0, FIRST_BASE_FILE, LAST_NOTE, 1]
EVERY = 1 if IS_SIMULATION else 19


def indexed_world(shape: Shape = MOR, *history: Write) -> ServiceWorld:
    history = history or HISTORY

    def made() -> ServiceWorld:
        world = with_file_lock(new_service_world(shape, *history))
        world.table(70).create_index(INDEX)
        world.write(updated(4, ts=3))
        return world

    return remembered(f"{INDEX} on {shape} {history}", made).twin()


def refresh(world: ServiceWorld, storage: object = None) -> object:
    return refresh_index(world.context(61, storage), INDEX)  # type: ignore[arg-type]


def base_files(world: ServiceWorld) -> set[str]:
    files = world.storage.walk(f".hoodie/metadata/{INDEX}")
    return {one.path for one in files if one.path.endswith(".hfile")}


@pytest.mark.parametrize("shape", [COW, MOR, FLAT_MOR], ids=str)
@pytest.mark.parametrize("step", STEPS)
def test_reads_use_the_old_entries_until_the_swap(shape: Shape, step: str | int) -> None:
    world = indexed_world(shape)
    seen = []

    def look() -> None:
        snapshot = world.snapshot()
        seen.append(IndexTrust(snapshot).doubt(INDEX))
        assert_true(world.table(80))
        (view,) = (one for one in world.table(81).index_states() if one.partition == INDEX)
        assert view.state is IndexState.READY

    before = base_files(world)
    refresh(world, at(world, step, look))
    assert seen == [None]
    assert_true(world.table(82))
    # Each of the ten groups has a new one, those without rows an empty one.
    assert len(base_files(world) - before) == 10


@pytest.mark.parametrize("write", [MORE, DELETED, Write("delete_partitions", (), ("a",))], ids=str)
@pytest.mark.parametrize("step", STEPS)
def test_a_write_in_any_step_is_in_the_index(step: str | int, write: Write) -> None:
    world = indexed_world()
    stage = at(world, step, lambda: world.write(write))
    refresh(world, stage)
    assert stage.has_done_it
    assert_true(world.table(82))
    world.write(updated(6, ts=11))
    assert_true(world.table(83))


def test_compactions_of_the_metadata_table_leave_the_index_alone_meanwhile() -> None:
    world = indexed_world()
    writes = [Write("upsert", (row(f"y{number}", 9),)) for number in range(14)]
    stage = at(world, FIRST_BASE_FILE, lambda: world.write(*writes))
    refresh(world, stage)
    assert_true(world.table(82))
    world.write(*(updated(2, ts=12 + number) for number in range(12)))
    assert_true(world.table(83))


def test_what_a_group_has_no_rows_of_any_more_does_not_show_through() -> None:
    world = indexed_world()
    world.write(Write("delete_partitions", (), ("a", "b")))
    refresh(world)
    assert indexed(world.table(82)) == homes(world.table(82)) == set()


def test_a_death_at_any_call_leaves_a_true_index_and_nothing_after_the_next_write() -> None:
    before = indexed_world()
    # Half a lock names nobody who could be seen to be dead.
    update_properties(before.storage, {"hoodie.write.lock.filesystem.expire": "5"})

    def again(world: ServiceWorld, stage: object) -> object:
        return refresh(world, stage)

    for death in killed(before, again, every=EVERY).values():  # type: ignore[arg-type]
        world = death.world
        assert isinstance(world, ServiceWorld)
        world.clock.advance(DEAD_AFTER_MS)
        assert_true(world.table(80))
        world.write(MORE)
        assert_true(world.table(81))
        call_off_half_plans(world, death.plan)
        refresh(world)
        assert_true(world.table(82))
        own = {path.rpartition("_")[2] for path in base_files(world)}
        counted = world.snapshot().metadata.timeline
        assert all(counted.is_completed(name.removesuffix(".hfile")) for name in own), death


@pytest.mark.parametrize("step", [FIRST_BASE_FILE, LAST_NOTE, 1])
def test_a_cancelled_refresh_leaves_the_old_entries(step: str | int) -> None:
    world = indexed_world()
    before = base_files(world)

    def stop() -> None:
        (instant,) = pending_builds(world)
        assert cancel(world.context(65), instant, "not wanted").outcome is Ending.CANCELLED

    with pytest.raises(LakewardenError) as stopped:
        refresh(world, at(world, step, stop))
    assert stopped.value.code == "cancelled"
    assert not pending_builds(world)
    assert base_files(world) == before
    assert_true(world.table(82))


def test_a_dropped_index_does_not_come_back() -> None:
    world = indexed_world()
    stage = at(world, LAST_NOTE, lambda: drop_index(world.context(65), INDEX))
    with pytest.raises(LakewardenError):
        refresh(world, stage)
    assert_gone(world)


@pytest.mark.parametrize("step", STEPS)
def test_a_rollback_beside_a_refresh_is_followed(step: str | int) -> None:
    world = indexed_world()
    world.write(MORE)
    newest = world.snapshot().timeline.active.completed()[-1].requested
    refresh(world, at(world, step, lambda: world.table(65).rollback(newest)))
    assert_true(world.table(82))


def test_a_rollback_of_what_the_new_entries_hold_takes_the_index_away() -> None:
    world = indexed_world()
    world.write(MORE)
    refresh(world)
    newest = world.snapshot().timeline.active.completed()[-1].requested
    done = world.table(65).rollback(newest)
    assert INDEX in done.metadata_dropped
    assert not world.table(80).config.has_metadata(INDEX)
    assert world.rows() == world.rows(use_metadata=False)


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("cow_indexing_record_keys_lost", "record_index"),
        ("cow_indexing_record_rolled_back", "record_index"),
        ("cow_indexing_secondary_lost", "by_name"),
        ("cow_build_column_stats_done", "column_stats"),
        ("cow_restore_drops_secondary", "record_index"),
    ],
)
def test_an_index_that_java_left_stale_is_ready_afterwards(
    name: str, index: str, golden_copy: GoldenTable
) -> None:
    path = golden_copy(f"indexing/{name}")
    before = {row["index_name"]: row["state"] for row in call("show_indexes", path)}
    assert before[index] == "STALE"
    call("refresh_index", path, index_name=index)
    after = {row["index_name"]: row for row in call("show_indexes", path)}
    assert (after[index]["state"], after[index]["reason"]) == ("READY", None)
    bad = [row for row in call("validate_table", path) if row["verdict"] == "failed"]
    assert not [row for row in bad if index in str(row)]
