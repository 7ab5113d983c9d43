"""A write that completes after a later one loses no row to the statistics that this one made."""

from contextlib import suppress

import pytest

from lakewarden import Table
from lakewarden.engine.testing.faults import Crashed
from tests.all_kinds import differences
from tests.crash.dying_operations import DEAD_AFTER_MS
from tests.engine.services.indexing.builds_kit import WRITE_BEGUN, Before
from tests.engine.services.service_table import COW, MOR, ServiceWorld, new_service_world, row
from tests.histories.guards import Guard
from tests.writing.model import Write, contents_of
from tests.writing.shapes import Shape, carry_out

NO_WIDENING = Guard(
    "a slow write widens the statistics of partitions",
    ("lakewarden.engine.metadata.writing.writer:widen_later",),
    lambda *_, **__: None,
)
BY_DAY = {"expr": "from_unixtime", "format": "yyyy-MM-dd"}
DAY = 86_400
FIRST = Write("upsert", (row("k0", 100 * DAY), row("k1", 100 * DAY)))
SLOW = Write("upsert", (row("m1", 5 * DAY),))
QUICK = Write("upsert", (row("n1", 200 * DAY),))


def new_world(shape: Shape) -> ServiceWorld:
    world = new_service_world(shape, FIRST)
    table = world.table(60)
    table.set_settings(
        {
            "hoodie.parquet.small.file.limit": "0",
            "lakewarden.index.expression.timezone": "UTC",
        }
    )
    world.table(61).create_index("by_day", ["ts"], "column_stats", BY_DAY)
    return world


def write_slowly(world: ServiceWorld, write: Write, meanwhile: Write) -> None:
    """Carry out a write during which another one begins and completes."""
    stage = Before(world.storage, world.clock, WRITE_BEGUN, lambda: world.write(meanwhile))
    carry_out(world.table(70, stage), write)
    assert stage.has_done_it


def assert_found(table: Table, key: str, days: int) -> None:
    asked = f"ts <= {days * DAY}" if days < 100 else f"ts >= {days * DAY}"
    found = contents_of(table.read_arrow(filter=asked))
    assert [one["id"] for one in found] == [key]
    assert found == contents_of(table.read_arrow(filter=asked, use_metadata=False))


@pytest.mark.parametrize("shape", [COW, MOR], ids=str)
def test_rows_of_a_write_that_completes_after_a_later_one_are_found(shape: Shape) -> None:
    world = new_world(shape)
    write_slowly(world, SLOW, QUICK)
    table = world.table(80)
    assert_found(table, "m1", 5)
    assert_found(table, "n1", 200)
    assert not differences(table)


@pytest.mark.parametrize("shape", [COW, MOR], ids=str)
def test_a_refresh_mends_statistics_that_were_never_widened(shape: Shape) -> None:
    """As those are that were written before there was such a rule."""
    world = new_world(shape)
    with NO_WIDENING.removed():
        write_slowly(world, SLOW, QUICK)
    asked = f"ts <= {5 * DAY}"
    assert not world.table(80).read_arrow(filter=asked).num_rows
    table = world.table(81)
    for name in ("column_stats", "by_day"):
        table.refresh_index(name)
    assert_found(table, "m1", 5)
    assert_found(table, "n1", 200)
    assert not differences(table)


def test_several_slow_writes_widen_what_one_later_write_has_said() -> None:
    world = new_world(COW)
    slower = Write("upsert", (row("m2", 2 * DAY),))
    stage = Before(
        world.storage, world.clock, WRITE_BEGUN, lambda: write_slowly(world, SLOW, QUICK)
    )
    carry_out(world.table(75, stage), slower)
    assert_found(world.table(80), "m2", 2)
    assert not differences(world.table(81))


def test_a_slow_write_that_never_completes_leaves_statistics_that_hold() -> None:
    world = new_world(COW)

    def die() -> None:
        raise Crashed

    # It would rewrite the only file, and leave no row that old.
    slow = Write("upsert", (row("k0", 300 * DAY), row("k1", 300 * DAY)))
    stage = Before(world.storage, world.clock, WRITE_BEGUN, lambda: world.write(QUICK))
    late = Before(stage, world.clock, r"/ledger/\d{17}/000003\.json$", die)
    with suppress(Crashed):
        carry_out(world.table(70, late), slow)
    assert stage.has_done_it
    assert late.has_done_it
    table = world.table(80)
    found = contents_of(table.read_arrow(filter=f"ts <= {100 * DAY}"))
    assert [one["id"] for one in found] == ["k0", "k1"]
    world.clock.advance(DEAD_AFTER_MS)
    world.write(Write("upsert", (row("z1", 50 * DAY),)))
    assert not differences(world.table(81))


def test_nothing_is_added_where_the_later_write_was_of_other_partitions() -> None:
    world = new_world(COW)
    write_slowly(world, SLOW, Write("upsert", (row("n1", 200 * DAY, "b"),)))
    assert not added(world)
    write_slowly(world, Write("upsert", (row("m3", 3 * DAY),)), Write("upsert", (row("n3", 9),)))
    assert added(world)


def added(world: ServiceWorld) -> list[str]:
    """The logs that were added to deltacommits of others."""
    names = [one.name for one in world.storage.walk(".hoodie/metadata")]
    return [one for one in names if "_0-2-" in one]
