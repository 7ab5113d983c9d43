"""What a build does while it holds the table's lock is the same for few rows and for many.

Writers wait for as long. So in no hold is a data file read, whatever writes beside the build.
"""

import pytest

from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.services.indexing.refresh import refresh_ready
from lakewarden.engine.services.indexing.request import WantedIndex
from lakewarden.engine.services.indexing.run_build import run_build
from lakewarden.engine.services.indexing.schedule_build import schedule_build
from lakewarden.engine.storage.port import Creation, Storage
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.cancel.cancel import cancel
from tests.all_kinds import BLOOM, BY_DAY, BY_LOW, BY_NAME, definition, differences
from tests.engine.services.indexing.builds_kit import Unknowing, at, with_file_lock
from tests.engine.services.indexing.holds_kit import LOCK, Hold, HoldWatch
from tests.engine.services.service_table import (
    COW,
    MOR,
    ServiceWorld,
    inserted,
    new_service_world,
    row,
)
from tests.writing.model import Write
from tests.writing.shapes import Shape, carry_out

STATISTICS = "column_stats"
# Each kind with the type of the table that it is built on.
SHAPES = {
    "record_index": COW,
    BY_NAME: MOR,
    BLOOM: COW,
    BY_DAY: MOR,
    BY_LOW: COW,
    STATISTICS: COW,
}
FEW, MANY, BURST = 10, 600, 20
DAY = 86_400
# Those of the plan, the start, the claim, the file groups, the base files and the completion.
HOLDS = 6
# Of the bytes that are read: times have more or fewer digits, and paths other names.
NOISE_BYTES = 400


class Beside(HoldWatch):
    """Has somebody write before each hold of the lock."""

    def __init__(self, world: ServiceWorld, writer: Storage | None = None) -> None:
        super().__init__(world.storage)
        self._world, self._writer, self._count = world, writer, 0

    def create_exclusive(self, path: str, payload: bytes) -> Creation:
        if path == LOCK and self._count < 8:
            self._count += 1
            self._world.clock.advance(1000)
            write = Write("upsert", (row("k1", 10 + self._count, "b"),))
            carry_out(self._world.table(200 + self._count, self._writer), write)
        return super().create_exclusive(path, payload)


def new_world(shape: Shape, kind: str, rows: int) -> ServiceWorld:
    world = with_file_lock(new_service_world(shape, inserted(rows)))
    world.table(70).set_settings({"lakewarden.index.expression.timezone": "UTC"})
    world.table(71).drop_index("column_stats", if_exists=True)
    if kind == BY_NAME:
        world.table(72).create_index("record_index", ["id"])
    return world


def wanted(kind: str) -> list[WantedIndex]:
    if kind != STATISTICS:
        return [WantedIndex(partition=kind, definition=definition(kind))]
    statistics = WantedIndex(partition=STATISTICS, columns=("id", "v"))
    return [statistics, WantedIndex(partition="partition_stats")]


def holds(shape: Shape, kind: str, rows: int, *, knows: bool) -> list[Hold]:
    """The holds of a build beside a writer that reports to builds, or does not know of them."""
    world = new_world(shape, kind, rows)
    writer = None if knows else Unknowing(world.storage, clock=world.clock)
    watch = Beside(world, writer)
    plan = schedule_build(world.context(60, watch), wanted(kind))
    run_build(world.context(61, watch), plan.instant)
    assert not differences(world.table(90))
    return watch.holds


@pytest.mark.parametrize("knows", [True, False], ids=["reporting", "unknowing"])
@pytest.mark.parametrize("kind", SHAPES)
def test_no_hold_of_a_build_grows_with_rows(kind: str, knows: bool) -> None:
    few, many = (holds(SHAPES[kind], kind, rows, knows=knows) for rows in (FEW, MANY))
    assert not [path for one in (*few, *many) for path in one.data_files]
    assert len(few) == len(many)
    # Beside writers that report to it, whatever they write, it completes at the first try.
    assert not knows or len(few) == HOLDS
    for small, large in zip(few, many, strict=True):
        assert large.calls == small.calls
        assert large.read_bytes <= small.read_bytes + NOISE_BYTES


def test_no_hold_of_a_new_metadata_table_reads_a_data_file() -> None:
    world = with_file_lock(new_service_world(COW, inserted(FEW)))
    world.table(70).delete_metadata_table()
    world.table(71).set_settings({"hoodie.metadata.record.index.enable": "true"})
    watch = Beside(world)
    made = world.table(72, watch).create_metadata_table()
    assert "record_index" in made
    assert not [path for one in watch.holds for path in one.data_files]
    assert not differences(world.table(90))


@pytest.mark.parametrize("kind", SHAPES)
def test_no_hold_of_a_refresh_reads_a_data_file(kind: str) -> None:
    world = new_world(MOR, kind, FEW)
    names = [one.partition for one in wanted(kind)]
    plan = schedule_build(world.context(60), wanted(kind))
    run_build(world.context(61), plan.instant)
    watch = Beside(world)
    refresh_ready(world.context(62, watch), names)
    assert watch.holds
    assert not [path for one in watch.holds for path in one.data_files]
    assert not differences(world.table(90))


def test_a_build_ends_beside_a_writer_that_never_reports_and_never_rests() -> None:
    world = new_world(COW, BY_DAY, FEW)
    watch = Beside(world, Unknowing(world.storage, clock=world.clock))
    watch._count = -50
    plan = schedule_build(world.context(60, watch), wanted(BY_DAY))
    run_build(world.context(61, watch), plan.instant)
    assert [one for one in watch.holds if one.data_files] == watch.holds[-1:]
    assert not differences(world.table(90))


class Bursts(Beside):
    """Has somebody write many times before the hold in which a build would complete.

    A row that came meanwhile and has values of its own goes with the last of the writes.
    """

    def create_exclusive(self, path: str, payload: bytes) -> Creation:
        if path == LOCK and len(self.holds) == HOLDS - 1:
            for number in range(BURST):
                operation = "delete" if number == BURST - 1 else "upsert"
                key, day = ("n1", 900) if number >= BURST - 2 else ("k1", 10 + number)
                self._world.clock.advance(1000)
                table = self._world.table(300 + number)
                carry_out(table, Write(operation, (row(key, day * DAY + number, "b"),)))
        return super().create_exclusive(path, payload)


def test_no_hold_of_a_build_grows_with_the_writes_beside_it() -> None:
    world = new_world(COW, BY_DAY, FEW)
    watch = Bursts(world)
    watch._count = BURST
    plan = schedule_build(world.context(60, watch), wanted(BY_DAY))
    run_build(world.context(61, watch), plan.instant)
    # What a hold would say of so many writes is said before the next one.
    assert len(watch.holds) == HOLDS + 1
    completes = watch.holds[HOLDS - 1 :]
    assert max(one.puts_below(BY_DAY) for one in completes) <= BURST // 2
    for number in range(3):
        table = world.table(90 + number)
        assert not differences(table)
        newest = table.timeline().completed((Action.COMMIT,))[-1]
        assert table.rollback(newest.requested).metadata_dropped == ()


@pytest.mark.parametrize("shape", [COW, MOR], ids=str)
def test_no_hold_of_a_writer_reads_a_data_file_for_an_index(shape: Shape) -> None:
    found = []
    for rows in (FEW, MANY):
        world = new_world(shape, BY_NAME, rows)
        kinds = [one for kind in SHAPES if kind != "record_index" for one in wanted(kind)]
        plan = schedule_build(world.context(60), kinds)
        run_build(world.context(61), plan.instant)
        watch = HoldWatch(world.storage)
        carry_out(world.table(80, watch), Write("upsert", (row("k1", 50, "b"), row("n1", 50))))
        assert not [path for one in watch.holds for path in one.data_files]
        found.append(watch.holds)
        assert not differences(world.table(90))
    for small, large in zip(*found, strict=True):
        assert large.calls == small.calls
        assert large.read_bytes <= small.read_bytes + NOISE_BYTES


def test_a_cancel_of_a_build_does_as_much_with_few_rows_as_with_many() -> None:
    found = []
    for rows in (FEW, MANY):
        world = new_world(MOR, BY_NAME, rows)
        instant = schedule_build(world.context(60), wanted(BY_NAME)).instant
        watch = HoldWatch(world.storage)

        def call_off(
            world: ServiceWorld = world, watch: HoldWatch = watch, of: str = instant
        ) -> None:
            cancel(world.context(65, watch), of, "not wanted", force=True)

        # All base files but the last are there.
        stage = at(world, r"groups/.*-0009-0\.json$", call_off)
        with pytest.raises(Conflict, match="cancelled"):
            run_build(world.context(61, stage), instant)
        assert not world.storage.walk(f".hoodie/metadata/{BY_NAME}")
        assert not [path for one in watch.holds for path in one.data_files]
        found.append((len(watch.calls), watch.holds))
    (few_calls, few), (many_calls, many) = found
    # It takes the lock once to end the build, and once to remove what is left of it.
    assert len(few) == len(many) == 2
    assert few_calls == many_calls
