"""Calls beside others that take things away: done, or to be tried again, and never seen as damage.

What goes is a write that is rolled back, or the metadata table.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from lakewarden import Conflict, InvalidRequest, Table, Unsettled
from lakewarden.engine.services.indexing.drop import drop_metadata
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.transaction.rollback_request import rollback
from tests.crash.dying_operations import ports, remembered
from tests.engine.services.service_table import (
    COW,
    MOR,
    ServiceWorld,
    inserted,
    new_service_world,
    row,
    updated,
)
from tests.engine.transaction.hooked import Hook
from tests.writing.shapes import Shape

# Every so many calls are tried; neighbours look at the same. Builds make hundreds of calls.
STEP, STEP_OF_BUILDS = 2, 11
NOT_WAITING = {"hoodie.write.lock.wait_time_ms": "0"}
CALLS: dict[str, Callable[[Table], object]] = {
    "clean": lambda table: table.clean(commits_retained=1),
    "clean, dry run": lambda table: table.clean(commits_retained=1, dry_run=True),
    "upsert": lambda table: table.upsert([row("k0", 9)]),
    "truncate": lambda table: table.truncate(),
    "drop partitions": lambda table: table.drop_partitions(["p=b"]),
    "deduplicate": lambda table: table.repair_deduplicate(dry_run=True),
    "column statistics": lambda table: table.column_statistics(),
    "column overlaps": lambda table: table.column_overlaps(),
    "compared files": lambda table: table.compared_files(),
    "explain": lambda table: table.explain(filter="v > 1"),
    "clustering": lambda table: table.clustering.schedule(),
}


INDEX_CALLS: dict[str, Callable[[Table], object]] = {
    "create": lambda table: table.create_index("bloom_filters"),
    "schedule": lambda table: table.build_index("by_v", ["v"], op="schedule"),
    "drop": lambda table: table.drop_index("by_name"),
    "refresh": lambda table: table.refresh_index("record_index"),
    "set": lambda table: table.set_index("BLOOM"),
    "maintain": lambda table: table.maintain_metadata(),
}


@pytest.mark.parametrize(
    ("name", "shape"), [*((one, MOR) for one in CALLS), ("explain", COW)], ids=str
)
def test_a_call_never_takes_a_rollback_for_damage(name: str, shape: Shape) -> None:
    def world() -> ServiceWorld:
        return new_service_world(shape, inserted(4), updated(4), updated(4, 3))

    play_beside(world, CALLS[name], roll_back_newest, STEP)


def test_a_refreshed_index_is_never_damaged_by_a_rollback() -> None:
    play_beside(indexed_world, INDEX_CALLS["refresh"], roll_back_newest, STEP_OF_BUILDS)


@pytest.mark.parametrize("dies", [False, True], ids=["whole", "half done"])
@pytest.mark.parametrize("index", ["by_low", "column_stats"])
def test_files_that_a_clean_removes_are_no_damage_to_a_build(index: str, *, dies: bool) -> None:
    def build(table: Table) -> object:
        if index == "column_stats":
            return table.refresh_index(index)
        return table.create_index(index, ["name"], "bloom_filters", {"expr": "lower"})

    def world() -> ServiceWorld:
        return new_service_world(COW, inserted(4), updated(4), updated(4, 3), updated(4, 4))

    play_beside(world, build, clean_and_die if dies else clean_up, STEP_OF_BUILDS)


@pytest.mark.parametrize("name", INDEX_CALLS)
def test_a_call_about_indexes_knows_that_the_metadata_table_was_dropped(name: str) -> None:
    # A plan is published by one of few calls, and it may not be on what is gone.
    step = STEP if name == "schedule" else STEP_OF_BUILDS
    play_beside(indexed_world, INDEX_CALLS[name], drop_metadata_table, step)


def play_beside(
    make: Callable[[], ServiceWorld],
    call: Callable[[Table], object],
    other: Callable[[ServiceWorld], None],
    step: int,
) -> None:
    """Make a call again and again, while the other one is made after one of its storage calls.

    A later write goes well each time.
    """
    at, is_over = 1, False
    while not is_over:
        world = make()
        hook = Hook(at, partial(other, world))
        with suppress(Conflict, InvalidRequest, Unsettled):
            call(Table.on(hook.storage(world.storage), ports(world.clock, 77)))
        world.clock.advance(1000)
        world.table(90).upsert([row("later", 9)])
        at, is_over = at + step, not hook.has_happened
    assert at > 2 * step


def indexed_world() -> ServiceWorld:
    """A table with a record index and one of values; it is made once."""
    return remembered("beside others", _indexed).twin()


def _indexed() -> ServiceWorld:
    world = new_service_world(MOR, inserted(4))
    world.table(60).create_index("record_index")
    world.clock.advance(1000)
    world.table(61).create_index("by_name", ["name"])
    world.write(updated(4))
    return world


def drop_metadata_table(world: ServiceWorld) -> None:
    """Drop it, unless the lock is held or something is under way."""
    with suppress(Conflict, InvalidRequest):
        drop_metadata(world.context(52, hoodie__write__lock__wait_time_ms=0))


def clean_up(world: ServiceWorld, storage: Storage | None = None) -> None:
    """Remove all that only the past needs, unless the lock is held."""
    table = Table.on(storage or world.storage, ports(world.clock, 53))
    with suppress(Conflict, InvalidRequest, Crashed):
        table.clean(options=NOT_WAITING, commits_retained=1)


def clean_and_die(world: ServiceWorld) -> None:
    """The same by a process that dies before it says what it has removed."""
    rehearsal = world.twin()
    calls = FaultyStorage(rehearsal.storage, FaultPlan(), rehearsal.clock)
    clean_up(rehearsal, calls)
    deletes = [one for one in calls.calls if one.operation == "delete" and "parquet" in one.path]
    for last in deletes[-1:]:
        fault = Fault(last.number, FaultKind.FAIL_AFTER, is_fatal=True)
        clean_up(world, FaultyStorage(world.storage, FaultPlan((fault,)), world.clock))


def roll_back_newest(world: ServiceWorld) -> None:
    writes = (one for one in world.snapshot().timeline.active.completed() if one.action.is_write)
    rolled_back(world, max(one.requested for one in writes))


def rolled_back(world: ServiceWorld, instant: str) -> None:
    """Roll a write back, unless the lock is held, or something already builds on the write."""
    with suppress(Conflict, InvalidRequest):
        rollback(world.context(51, hoodie__write__lock__wait_time_ms=0), instant)
