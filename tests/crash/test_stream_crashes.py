"""Batches of a stream that die at any storage call: each is in the table once, and in order.

The process that comes next writes the same batch again, as Spark has it do when a query starts.
"""

from collections.abc import Mapping

import pytest

from lakewarden import Table
from lakewarden.engine.formats.instant_metadata.commit import decode
from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.write.streams import STREAM_KEY
from tests.crash.crash_cases import row
from tests.crash.dying_operations import (
    DEAD_AFTER_MS,
    SWEPT_AFTER_MS,
    CrashedTable,
    Death,
    deaths,
    new_world,
)
from tests.sampling import IS_SIMULATION, sample
from tests.writing.model import ModelRow, Write
from tests.writing.shapes import Shape

# Each death is one of three in a row; a prime number takes all three in turn.
EVERY = 1 if IS_SIMULATION else 29
SHAPES = (
    Shape("mor", index="RECORD_INDEX"),
    Shape("cow", is_partitioned=False, has_metadata=False),
)
# Inserts would double rows, and the second batch moves a row of the first one on.
BATCHES = (
    ("insert", (row("k0", "a", 1), row("k1", "b", 1))),
    ("insert", (row("k2", "a", 2),)),
    ("upsert", (row("k0", "a", 3), row("k3", "b", 3))),
)


# All that the services do after a batch.
BESIDE = {
    "lakewarden.services.beside": "true",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "1",
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}


def write(table: Table, number: int, options: Mapping[str, str] | None = None) -> object:
    kind, rows = BATCHES[number]
    return getattr(table, kind)(Write(kind, rows).table(), options, stream=("s", number))


def world_of(shape: Shape, batches: int) -> CrashedTable:
    world = new_world(shape, ())
    for number in range(batches):
        write(world.table(10 + number), number)
        world.clock.advance(1000)
    return world


def after(shape: Shape, batches: int) -> list[ModelRow]:
    model = shape.model()
    for _, rows in BATCHES[:batches]:
        model.apply(Write("upsert", rows))
    return model.contents()


def batches_of(world: CrashedTable) -> list[str]:
    """What the completed instants say of streams, in the order of completion."""
    active = world.table(80).timeline()
    found = active.completed_between(None, None)
    return [decode(active.read(one), "it").extra_metadata[STREAM_KEY] for one in found]


def assert_once_and_in_order(world: CrashedTable, shape: Shape, name: str) -> None:
    assert world.rows() == after(shape, 3), name
    assert world.rows(use_metadata=False) == world.rows(), f"{name}: listings differ"
    said = [f'"batch": {number}' in text for number, text in enumerate(batches_of(world))]
    assert said == [True] * 3, f"{name}: batches are not once and in order"
    assert world.strays() == set(), f"{name}: stray files"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dying", [0, 1], ids=["first", "second"])
def test_a_batch_that_dies_is_written_once_by_whoever_comes_next(shape: Shape, dying: int) -> None:
    before = world_of(shape, dying)
    found = deaths(before, lambda table: write(table, dying), every=EVERY)
    assert len(found) > 50 // EVERY
    for death in found.values():
        assert_goes_on(death, shape, dying)


def test_services_beside_a_batch_that_die_leave_it_there_once() -> None:
    shape = SHAPES[0]
    before = world_of(shape, 2)
    every = 1 if IS_SIMULATION else 61
    found = deaths(before, lambda table: write(table, 2, BESIDE), every=every)
    assert len(found) > 200 // every
    for death in found.values():
        world = death.world
        assert world.rows() in (after(shape, 2), after(shape, 3)), f"{death}: half a batch"
        world.clock.advance(DEAD_AFTER_MS)
        write(world.table(60), 2, BESIDE)
        world.clock.advance(SWEPT_AFTER_MS)
        world.table(61).clean()
        assert world.rows() == after(shape, 3), str(death)
        assert world.rows(use_metadata=False) == world.rows(), f"{death}: listings differ"


def assert_goes_on(death: Death, shape: Shape, dying: int) -> None:
    world = death.world
    assert world.rows() in (after(shape, dying), after(shape, dying + 1)), f"{death}: half a batch"
    world.clock.advance(DEAD_AFTER_MS)
    for number in range(dying, 3):
        write(world.table(60 + number), number)
        world.clock.advance(SWEPT_AFTER_MS)
    assert_once_and_in_order(world, shape, str(death))


def test_an_answer_that_is_lost_at_any_call_neither_doubles_nor_loses_a_batch() -> None:
    """The process lives on, and calls again after an error, as foreachBatch does."""
    shape = SHAPES[0]
    before = world_of(shape, 1)
    rehearsal = before.copy()
    counting = FaultyStorage(rehearsal.storage, FaultPlan(), rehearsal.clock)
    write(rehearsal.table(50, counting), 1)
    kinds = (FaultKind.LOST_ANSWER, FaultKind.LOST_REQUEST, FaultKind.RETRIED)
    faults = [Fault(call, kind) for call in range(1, len(counting.calls) + 1) for kind in kinds]
    for fault in sample(faults, EVERY):
        plan = FaultPlan((fault,))
        world = before.copy()
        try:
            write(world.table(50, FaultyStorage(world.storage, plan, world.clock)), 1)
        except LakewardenError:
            world.clock.advance(DEAD_AFTER_MS)
            write(world.table(60), 1)
        write(world.table(61), 2)
        world.clock.advance(SWEPT_AFTER_MS)
        assert world.rows() == after(shape, 3), f"replay with plan {str(plan)!r}"
        assert len(batches_of(world)) == 3, f"replay with plan {str(plan)!r}"


def test_a_death_while_a_stream_is_forgotten_leaves_it_known_or_forgotten() -> None:
    shape = SHAPES[0]
    for death in deaths(world_of(shape, 2), lambda table: table.forget_stream("s")).values():
        known = [view.batch for view in death.world.table(60).streams()]
        assert known in ([], [1]), str(death)
        death.world.clock.advance(DEAD_AFTER_MS)
        write(death.world.table(61), 2)
        assert_once_and_in_order(death.world, shape, str(death))
