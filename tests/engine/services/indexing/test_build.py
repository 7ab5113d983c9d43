"""Indexes that are built on rows are those that writes would have kept, whatever happens."""

import os
from collections.abc import Callable
from contextlib import suppress

import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.metadata.entries.changes import TableChange
from lakewarden.engine.metadata.reading.column_stats import partition_ranges
from lakewarden.engine.metadata.reading.definitions import load_definitions
from lakewarden.engine.testing.fault_plan import crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.state.loading import load_for_writing
from lakewarden.engine.write.at_commit import AtCommit
from tests.engine.services.indexing.indexed_tables import homes, indexed, state_of
from tests.engine.services.service_table import (
    COW,
    FLAT_MOR,
    MOR,
    ServiceWorld,
    contents,
    inserted,
    new_service_world,
    row,
    updated,
)
from tests.writing.model import Write
from tests.writing.shapes import Shape

IS_SIMULATION = "LAKEWARDEN_KILLS" in os.environ
DELETED = Write("delete", (row("k0"),))
HISTORY = (inserted(), updated(), Write("upsert", (row("n1", 3), row("k2", 3))), DELETED)
STATISTICS = ("column_stats", "partition_stats")


def statistics(table: Table) -> object:
    """All that is known of columns, by file and by partition."""
    state = state_of(table)
    columns = ["_hoodie_record_key", "id", "ts", "v", "name"]
    kept = {"column_stats": table.column_statistics()}
    if state.config.has_metadata("partition_stats"):
        statistics = state.metadata.partition("partition_stats")
        kept["partition_stats"] = partition_ranges(statistics, columns, ["p=a", "p=b", "a", "b"])
    return kept


def built(world: ServiceWorld, name: str, **arguments: object) -> Table:
    table = world.table(70)
    table.create_index(name, **arguments)  # type: ignore[arg-type]
    return table


@pytest.mark.parametrize("shape", [COW, MOR, FLAT_MOR], ids=str)
def test_a_record_index_leads_to_every_row_and_writes_keep_it(shape: Shape) -> None:
    world = new_service_world(shape, *HISTORY)
    table = built(world, "record_index", columns=["id"])
    assert indexed(table) == homes(table)
    more = Write("upsert", (row("k3", 9, "b"), row("x1", 9)))
    world.write(more, Write("delete", (row("k4"),)))
    assert indexed(table) == homes(table)
    assert world.rows() == contents(shape, *HISTORY, more, Write("delete", (row("k4"),)))


def test_an_index_for_each_partition_may_have_a_key_in_several() -> None:
    twice = Write("upsert", (row("k1", 4, "a"),))
    world = new_service_world(MOR, *HISTORY, twice)
    with pytest.raises(InvalidRequest, match="'k1' more than once") as refused:
        built(world, "record_index", columns=["id"])
    assert refused.value.code == "repeated_keys"
    table = built(world, "record_index", columns=["id"], options={"isPartitioned": "true"})
    assert indexed(table) == homes(table)
    (index,) = (one for one in table.indexes() if one.partition == "record_index")
    assert index.is_partitioned


def test_an_index_for_each_partition_is_built_where_no_row_is_left() -> None:
    world = new_service_world(MOR, inserted(), Write("delete_partitions", (), ("a", "b")))
    table = built(world, "record_index", columns=["id"], options={"isPartitioned": "true"})
    assert indexed(table) == set()
    assert table.lookup(["k0"]).num_rows == 0
    world.write(updated())
    assert indexed(world.table(71)) == homes(world.table(71))


@pytest.mark.parametrize("shape", [COW, MOR, FLAT_MOR], ids=str)
def test_statistics_are_those_that_writes_have_kept(shape: Shape) -> None:
    world = new_service_world(shape, *HISTORY)
    table = world.table(70)
    kept = statistics(table)
    table.drop_index("column_stats")
    assert not set(STATISTICS) & set(table.config.metadata_partitions)
    table.create_index("column_stats")
    if shape.is_partitioned:
        table.create_index("partition_stats")
    assert statistics(table) == kept
    world.write(updated(6, 8))
    assert world.rows() == world.rows(use_metadata=False)


def test_statistics_of_chosen_columns_are_kept_of_these() -> None:
    world = new_service_world(MOR, *HISTORY)
    table = world.table(70)
    table.drop_index("column_stats")
    table.create_index("column_stats", ["v"])
    assert {one.column for one in table.column_statistics()} == {
        "_hoodie_commit_time",
        "_hoodie_partition_path",
        "_hoodie_record_key",
        "v",
    }


def test_refreshing_builds_the_same_anew() -> None:
    world = new_service_world(MOR, *HISTORY)
    table = built(world, "record_index", columns=["id"], options={"isPartitioned": "true"})
    kept, defined = statistics(table), load_definitions(world.storage, table.config)
    for name in ("record_index", "column_stats"):
        done = table.refresh_index(name)
        assert done.is_changed
    assert (statistics(table), indexed(table)) == (kept, homes(table))
    assert load_definitions(world.storage, table.config) == defined


def test_a_metadata_table_comes_back_as_it_was() -> None:
    world = new_service_world(MOR, *HISTORY)
    table = world.table(70)
    kept, listed = statistics(table), table.metadata_listing().files()
    gone = table.delete_metadata_table()
    assert set(gone) == {"files", *STATISTICS}
    assert not world.storage.walk(".hoodie/metadata")
    assert world.rows() == contents(MOR, *HISTORY)
    world.write(updated(6, 5))
    world.table(71).rollback(table.timeline().instants[-1].requested)
    assert set(table.create_metadata_table()) == {"files", *STATISTICS}
    assert table.metadata_listing().files() == listed
    assert statistics(table) == kept
    assert table.compared_files()
    assert all(file.is_same for file in table.compared_files())


def test_whoever_is_at_work_is_not_disturbed() -> None:
    world = new_service_world(MOR, *HISTORY)
    attempt = publish(world.context(60), Action.DELTA_COMMIT, claims=True).attempt
    assert attempt is not None
    before = world.storage.walk("")
    changes: list[Callable[[Table], object]] = [
        lambda table: table.drop_index("column_stats"),
        lambda table: table.delete_metadata_table(),
    ]
    with attempt:
        for change in changes:
            with pytest.raises(Conflict) as refused:
                change(world.table(70))
            assert refused.value.code == "table_busy"
        assert {one.path for one in world.storage.walk("")} == {one.path for one in before}


def test_a_plan_that_waits_does_no_harm() -> None:
    world = new_service_world(MOR, *HISTORY)
    plan = world.table(60).compaction.schedule()
    table = built(world, "record_index", columns=["id"])
    assert indexed(table) == homes(table)
    plan.run()  # type: ignore[union-attr]
    assert indexed(table) == homes(table)
    assert world.rows() == contents(MOR, *HISTORY)


def test_a_write_that_began_without_the_index_begins_anew() -> None:
    world = new_service_world(MOR, *HISTORY)
    table = world.table(60)
    known = table.indexes()
    at_commit = AtCommit(world.storage, state_of(table).schema(), (), {}, known)
    change = TableChange(instant="1")
    assert at_commit(change, load_for_writing(world.context(61))).instant == "1"
    built(world, "record_index", columns=["id"])
    with pytest.raises(Conflict, match="'record_index'") as refused:
        at_commit(change, load_for_writing(world.context(61)))
    assert refused.value.code == "write_conflict"


@pytest.mark.parametrize("name", ["record_index", "column_stats"])
def test_a_crash_at_any_call_leaves_a_true_table_and_building_goes_on(name: str) -> None:
    """Of the many calls those that write, or every seventh of them."""
    start = new_service_world(MOR, *HISTORY)
    start.table(70).drop_index("column_stats")
    rehearsal = start.copy()
    recording = FaultyStorage(rehearsal.storage)
    rehearsal.table(71, recording).create_index(name)
    writing = [call for call in recording.calls if call.operation in ("put", "create_exclusive")]
    for plan in list(crash_plans(writing))[:: 1 if IS_SIMULATION else 7]:
        world = start.copy()
        with suppress(Crashed):
            world.table(71, FaultyStorage(world.storage, plan)).create_index(name)
        world.clock.advance(3_600_000)
        assert world.rows() == contents(MOR, *HISTORY), plan
        table = world.table(72)
        table.create_index(name, if_not_exists=True)
        world.write(updated(6, 7))
        assert world.rows() == world.rows(use_metadata=False), plan
        if name == "record_index":
            assert indexed(table) == homes(table), plan
