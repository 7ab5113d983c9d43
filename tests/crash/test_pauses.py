"""Whoever stands still after any storage call, for longer than the lock lasts, loses nothing.

Others take it for dead and go on meanwhile; then it wakes and goes on, too.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import pytest

from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.services.indexing.build import create_index
from lakewarden.engine.services.indexing.request import IndexRequest
from lakewarden.engine.services.metadata_table.service import maintain_metadata_table
from lakewarden.engine.services.restore.run import restore
from lakewarden.engine.services.savepoint.run import savepoint
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.rollback_request import rollback
from lakewarden.engine.write import operations
from lakewarden.engine.write.writer import TableWriter
from tests.engine.services.service_table import ServiceWorld, inserted, new_service_world, row
from tests.engine.transaction.hooked import Hook
from tests.engine.transaction.just_before import JustBefore
from tests.sampling import sample
from tests.writing.model import Write
from tests.writing.shapes import Shape

# One lock that all hold, and which others take over after a minute.
SHARED = {"hoodie__write__lock__provider": "filesystem"}
PAUSE_MS = 200_000
COMPACTED_AFTER = "hoodie__metadata__compact__max__delta__commits"
BEFORE = ("b0", "b1", "b2")
Doing = Callable[[ServiceWorld, Storage], str | None]


def put(
    world: ServiceWorld, seed: int, key: str, storage: Storage | None = None, *, after: int = 100
) -> str:
    """A write of one key; it compacts the metadata table if so many deltacommits are there."""
    world.clock.advance(1000)
    context = world.context(seed, storage, **SHARED, **{COMPACTED_AFTER: after})
    rows = Write("upsert", (row(key),)).table()
    return TableWriter(context).write(operations.upsert(rows)).instant


def write_compacting(world: ServiceWorld, storage: Storage) -> str:
    put(world, 50, "paused", storage, after=3)
    return "paused"


def maintain(world: ServiceWorld, storage: Storage) -> None:
    like_two_slices = {"hoodie__metadata__derive__from__datatable__clean__policy": False}
    maintain_metadata_table(world.context(50, storage, **SHARED, **like_two_slices))


def build(world: ServiceWorld, storage: Storage) -> None:
    request = IndexRequest(name="record_index", columns=("id",), index_type="record_index")
    create_index(world.context(50, storage, **SHARED), request)


@dataclass(frozen=True)
class Sleeper:
    """What pauses, on which table, and after which of its calls it is tried."""

    do: Doing
    shape: Shape
    first: int
    stride: int
    # Others compact as well.
    others_after: int = 100

    def __str__(self) -> str:
        return f"{self.do.__name__}-{self.shape}-{self.others_after}"


SLEEPERS = [
    Sleeper(write_compacting, Shape("cow"), 68, 7),
    Sleeper(write_compacting, Shape("cow"), 71, 11, others_after=2),
    Sleeper(write_compacting, Shape("mor", index="RECORD_INDEX"), 100, 11),
    Sleeper(maintain, Shape("cow"), 5, 7, others_after=2),
    Sleeper(build, Shape("cow"), 57, 4),
]


def origin_of(shape: Shape) -> ServiceWorld:
    world = new_service_world(shape, inserted(2))
    for seed, key in enumerate(BEFORE, start=10):
        put(world, seed, key)
    world.clock.advance(1000)
    return world


def assert_holds(world: ServiceWorld, expected: set[str], note: str) -> None:
    for use_metadata in (True, False):
        seen = [str(one["id"]) for one in world.rows(use_metadata=use_metadata)]
        assert sorted(seen) == sorted(expected), f"{note}, metadata: {use_metadata}"
    checked = world.table(96).validate(("metadata_table", "record_index", "column_stats"))
    assert [one for one in checked if one.finding.verdict == "failed"] == [], note


@pytest.mark.parametrize("sleeper", SLEEPERS, ids=str)
def test_nothing_acknowledged_is_lost(sleeper: Sleeper) -> None:
    origin = origin_of(sleeper.shape)
    counting = Hook(1 << 30, lambda: None)
    rehearsal = origin.copy()
    sleeper.do(rehearsal, counting.storage(rehearsal.storage))
    assert counting.calls > sleeper.first
    for at in sample(range(sleeper.first, counting.calls + 1, sleeper.stride), 7):
        world = origin.copy()
        expected = {"k0", "k1", *BEFORE, "c", "d", "e"}

        def others_go_on(world: ServiceWorld = world) -> None:
            world.clock.advance(PAUSE_MS)
            for key in "cde":
                put(world, 60 + ord(key), key, after=sleeper.others_after)

        hook = Hook(at, others_go_on)
        with suppress(Conflict):
            made = sleeper.do(world, hook.storage(world.storage))
            expected |= {made} if made else set()
        assert hook.has_happened
        note = f"paused after call {at}"
        assert_holds(world, expected, note)
        for number in range(4):
            put(world, 80 + number, f"later {number}", after=3)
            expected.add(f"later {number}")
        maintain_metadata_table(world.context(90, **SHARED))
        assert_holds(world, expected, f"{note}, later")


@pytest.mark.parametrize("undo", ["rollback", "restore"])
def test_who_takes_a_write_back_may_pause_as_well(undo: str) -> None:
    shape = Shape("cow", index="RECORD_INDEX")
    origin = origin_of(shape)
    completed = [one.requested for one in origin.table(97).timeline().completed()]

    def take_back(world: ServiceWorld, storage: Storage) -> None:
        context = world.context(50, storage, **SHARED)
        rollback(context, completed[-1]) if undo == "rollback" else restore(context, completed[-2])

    counting = Hook(1 << 30, lambda: None)
    rehearsal = origin.copy()
    take_back(rehearsal, counting.storage(rehearsal.storage))
    for at in sample(range(5, counting.calls + 1, 11), 5):
        world = origin.copy()
        acknowledged = set()

        def others_go_on(world: ServiceWorld = world, done: set[str] = acknowledged) -> None:
            world.clock.advance(PAUSE_MS)
            with suppress(Conflict):
                for key in "cd":
                    put(world, 60 + ord(key), key, after=3)
                    done.add(key)

        # It is refused where others have written upon what was to go.
        with suppress(Conflict, InvalidRequest):
            take_back(world, Hook(at, others_go_on).storage(world.storage))
        seen = {str(one["id"]) for one in world.rows()}
        # A restore that had not started takes back what was written by then, too.
        kept = {"k0", "k1", "b0", "b1"}
        may_be = [kept | acknowledged, *([kept] if undo == "restore" else [])]
        assert seen - {"b2"} in may_be, f"call {at}"
        assert_holds(world, seen, f"call {at}")
        world.clock.advance(PAUSE_MS)
        if undo == "rollback":
            put(world, 80, "later", after=3)
            assert_holds(world, {str(one["id"]) for one in world.rows()}, f"call {at}, later")
            assert {"later", *acknowledged} <= {str(one["id"]) for one in world.rows()}


Building = Callable[[ServiceWorld], object]


def write_upon(world: ServiceWorld) -> None:
    put(world, 60, "c")


def save(world: ServiceWorld) -> None:
    savepoint(world.context(60, **SHARED))


@pytest.mark.parametrize("builds", [write_upon, save], ids=lambda one: one.__name__)
def test_a_write_that_stays_because_others_built_upon_it_stays_committed(builds: Building) -> None:
    origin = origin_of(Shape("cow", has_metadata=False))
    newest = origin.table(97).timeline().completed()[-1].requested

    def take_back(world: ServiceWorld, storage: Storage) -> None:
        rollback(world.context(50, storage, **SHARED), newest)

    counting = Hook(1 << 30, lambda: None)
    rehearsal = origin.copy()
    take_back(rehearsal, counting.storage(rehearsal.storage))
    for at in range(1, counting.calls + 1):
        world = origin.copy()
        with suppress(Conflict, InvalidRequest):
            hook = Hook(at, lambda world=world: others_build(world, builds))
            take_back(world, hook.storage(world.storage))
        assert_all_committed(world, f"call {at}")
    world = origin.copy()
    gap = JustBefore(
        world.storage,
        world.clock,
        lambda: others_build(world, builds),
        name=".rollback.requested",
    )
    with pytest.raises(Conflict):
        take_back(world, gap)
    # What is left of the rollback is given up by whoever finds it.
    world.clock.advance(PAUSE_MS)
    recover_failed_instants(world.context(51, **SHARED))
    assert_all_committed(world, "the gap")
    assert not world.table(97).timeline().pending()


def others_build(world: ServiceWorld, builds: Building) -> None:
    world.clock.advance(PAUSE_MS)
    with suppress(Conflict):
        builds(world)


def assert_all_committed(world: ServiceWorld, note: str) -> None:
    active = world.table(97).timeline()
    completed = {one.requested for one in active.completed()}
    for requested in completed:
        ends_in = read_ledger(world.storage, requested).ends_in
        assert ends_in is LedgerEnd.COMMITTED, f"{requested} after {note}"
    assert {one.requested for one in active.savepoints()} <= completed, note
