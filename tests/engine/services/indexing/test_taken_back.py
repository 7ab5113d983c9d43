"""Indexes and what is taken back: whenever one was built, it is true or gone, and that is told."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import product

import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.testing.fault_plan import crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from tests.engine.services.service_table import (
    ServiceWorld,
    contents,
    inserted,
    new_service_world,
    row,
    rows,
    updated,
)
from tests.sampling import sample
from tests.writing.model import Write
from tests.writing.shapes import PARTITIONED_RECORD_INDEX, Shape

FIRST = inserted(4)
TAKEN_BACK = {
    "upsert": Write("upsert", (row("k0", 3), row("k1", 3, "b"), row("new", 3), row("far", 3, "c"))),
    "delete": Write("delete", (row("k0", 9), row("k1", 9, "b"))),
    "overwrite": Write("overwrite_partitions", rows(("k0", "other"), 3)),
    "drop": Write("delete_partitions", (), ("a",)),
}
AFTERWARDS = Write(
    "upsert",
    tuple(row(key, 20, place) for key, place in (("k0", "a"), ("k1", "b"), ("new", "a"))),
)
LISTING = {"cow": Shape("cow", has_metadata=False), "mor": Shape("mor", has_metadata=False)}
Build = Callable[[Table], object]
Undo = Callable[[Table, str, str], tuple[str, ...]]


def record_index(table: Table) -> object:
    return table.create_index("record_index", ["id"], "record_index")


def refreshed_statistics(table: Table) -> object:
    return table.refresh_index("column_stats")


def metadata_table(table: Table) -> object:
    return table.create_metadata_table()


BUILDS: dict[str, tuple[bool, Build, set[str]]] = {
    "record index": (True, record_index, {"record_index"}),
    "statistics": (True, refreshed_statistics, {"column_stats", "partition_stats"}),
    "metadata table": (False, metadata_table, {"column_stats", "partition_stats"}),
}


def roll_back(table: Table, newest: str, before: str) -> tuple[str, ...]:
    dry_run_result = table.rollback(newest, dry_run=True)
    done = table.rollback(newest)
    assert dry_run_result.metadata_dropped == done.metadata_dropped
    return done.metadata_dropped


def restore(table: Table, newest: str, before: str) -> tuple[str, ...]:
    dry_run_result = table.restore(before, dry_run=True)
    done = table.restore(before)
    assert set(dry_run_result.metadata_dropped) == set(done.metadata_dropped)
    return done.metadata_dropped


UNDOS: dict[str, Undo] = {"rollback": roll_back, "restore": restore}


def newest(world: ServiceWorld) -> str:
    return world.table(97).timeline().completed()[-1].requested


def assert_true(world: ServiceWorld, shape: Shape, *writes: Write) -> None:
    """Rows, lookups and indexes say the same, and what is written next is like any."""
    then = contents(shape, *writes)
    table = world.table(97)
    assert world.rows() == world.rows(use_metadata=False) == then
    assert [one for one in table.validate() if one.finding.verdict == "failed"] == []
    keys = [str(one["id"]) for one in then]
    asked = sorted({*keys, "k0", "k1", "new", "far", "other"})
    assert sorted(table.lookup(asked).column("id").to_pylist()) == sorted(keys)
    for key in asked:
        found = table.read_arrow(["id"], filter=[("id", "=", key)]).num_rows
        assert found == keys.count(key), key
    world.write(AFTERWARDS, updated(2, ts=30))
    assert world.rows() == contents(shape, *writes, AFTERWARDS, updated(2, ts=30))
    assert world.rows() == world.rows(use_metadata=False)
    assert [one for one in table.validate() if one.finding.verdict == "failed"] == []


@pytest.mark.parametrize(
    ("kind", "build", "when", "taken_back", "undo"),
    sample(list(product(("cow", "mor"), BUILDS, ("before", "after"), TAKEN_BACK, UNDOS)), 13),
)
def test_an_index_follows_what_is_taken_back(
    kind: str, build: str, when: str, taken_back: str, undo: str
) -> None:
    has_metadata, make, of_build = BUILDS[build]
    shape = replace(Shape(kind), has_metadata=has_metadata)
    world = new_service_world(shape, FIRST)
    before = newest(world)
    if when == "before":
        make(world.table(60))
    world.write(TAKEN_BACK[taken_back])
    if when == "after":
        make(world.table(60))
    world.clock.advance(1000)
    dropped = UNDOS[undo](world.table(61), newest(world), before)
    assert set(dropped) <= of_build
    assert ("record_index" in dropped) == (build == "record index" and when == "after")
    assert when == "after" or not dropped
    assert_true(world, shape, FIRST)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_restore_over_indexes_built_at_different_times_drops_those_built_later(
    kind: str,
) -> None:
    world = new_service_world(Shape(kind), FIRST)
    before = newest(world)
    world.write(TAKEN_BACK["upsert"])
    record_index(world.table(60))
    world.write(*(updated(2, ts=ts) for ts in range(4, 9)))
    world.table(61).maintain_metadata()
    world.write(TAKEN_BACK["delete"])
    done = world.table(62).restore(before)
    assert "record_index" in done.metadata_dropped
    assert_true(world, Shape(kind), FIRST)


def test_an_index_that_was_dropped_and_built_again_counts_from_then() -> None:
    world = new_service_world(Shape("mor"), FIRST)
    record_index(world.table(60))
    before = newest(world)
    world.write(TAKEN_BACK["delete"])
    world.table(61).drop_index("record_index")
    world.clock.advance(1000)
    record_index(world.table(62))
    assert world.table(63).restore(before).metadata_dropped == ("record_index",)
    assert_true(world, Shape("mor"), FIRST)


@pytest.mark.parametrize("undo", UNDOS)
@pytest.mark.parametrize("build", ["record index", "metadata table"])
def test_wherever_it_dies_whoever_goes_on_finds_the_index_true_or_gone(
    undo: str, build: str
) -> None:
    has_metadata, make, _ = BUILDS[build]
    shape = Shape("mor", has_metadata=has_metadata)
    origin = new_service_world(shape, FIRST)
    before = newest(origin)
    origin.write(TAKEN_BACK["delete"])
    last = newest(origin)
    make(origin.table(60))
    origin.clock.advance(1000)

    def live(world: ServiceWorld, storage: Storage) -> None:
        table = world.table(61, storage)
        table.rollback(last) if undo == "rollback" else table.restore(before)

    rehearsal = origin.copy()
    faulty = FaultyStorage(rehearsal.storage, clock=rehearsal.clock)
    live(rehearsal, faulty)
    for plan in sample(list(crash_plans(faulty.calls)), 29):
        world = origin.copy()
        with pytest.raises(Crashed):
            live(world, FaultyStorage(world.storage, plan, world.clock))
        world.clock.advance(600_000)
        seen = world.rows()
        assert seen == world.rows(use_metadata=False), str(plan)
        assert [str(one["id"]) for one in seen] in (["k0", "k1", "k2", "k3"], ["k2", "k3"])
        # Where it had come so far that others were able to finish it, there is no such write.
        with suppress(InvalidRequest):
            live(world, world.storage)
        assert_true(world, shape, FIRST)


def test_a_lookup_in_a_table_without_rows_is_empty() -> None:
    for index in ("RECORD_INDEX", PARTITIONED_RECORD_INDEX):
        world = new_service_world(Shape("mor", index=index))
        assert world.table(60).lookup(["k0"]).num_rows == 0
        world.write(FIRST, Write("delete_partitions", (), ("a", "b")))
        assert world.table(61).lookup(["k0"]).num_rows == 0
