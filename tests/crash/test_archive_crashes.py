"""An archival that dies at any storage call: every instant is there still, exactly once.

Readers take the archive and the active timeline together. Nobody takes a completed instant for
pending, and the next archival goes on without writing anything twice.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO

import fastavro
import pytest

from lakewarden.engine.services.archive.run import (
    archive,
    archive_metadata,
    run_timeline_compaction,
)
from lakewarden.engine.services.retention.archive_plan import ArchiveLimits
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.testing.fault_plan import FaultPlan, crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.timeline.archived.reader import LsmArchive
from lakewarden.engine.timeline.archived.writer import LsmLimits
from lakewarden.engine.timeline.instants.instant import Instant
from lakewarden.engine.timeline.timeline import Timeline, load_active
from tests.crash.dying_operations import SWEPT_AFTER_MS
from tests.engine.services.service_table import ServiceWorld, inserted, new_service_world, updated
from tests.writing.shapes import Shape

IS_SIMULATION = "LAKEWARDEN_KILLS" in os.environ
# Every so many places to die at, unless all of them are wanted.
STRIDE = 1 if IS_SIMULATION else 5
COW = Shape("cow", has_metadata=False)
FEW = {
    "hoodie__keep__min__commits": "2",
    "hoodie__keep__max__commits": "3",
    "hoodie__clean__commits__retained": "1",
}
BY_TWOS = {**FEW, "hoodie__timeline__compaction__batch__size": "2"}
Union = dict[Instant, object]


def timeline_of(storage: Storage) -> Timeline:
    return load_snapshot(storage).timeline


def union(timeline: Timeline) -> Union:
    """All instants, and what each says of itself, however it is compressed."""
    return {instant: _said(_content(timeline, instant)) for instant in timeline.instants()}


def _said(content: bytes) -> object:
    return list(fastavro.reader(BytesIO(content))) if content.startswith(b"Obj") else content


def _content(timeline: Timeline, instant: Instant) -> bytes:
    if timeline.active.files_of(instant) is not None:
        return timeline.active.read(instant)
    row = timeline.archive.read(instant)
    assert row is not None
    return row.metadata or b""


def assert_once(storage: Storage, timeline: Timeline, before: Union, death: str) -> None:
    assert union(timeline) == before, f"{death}: instants are lost, new or others"
    assert not timeline.active.pending(), f"{death}: a completed instant looks pending"
    folder = timeline.active.layout.history_folder
    archived: list[Instant] = []
    for file in LsmArchive(storage, folder).snapshot.files:
        lone = LsmArchive(storage, folder)
        lone.snapshot = type(lone.snapshot)(1, (file,))
        archived += lone.instants()
    assert len(archived) == len(set(archived)), f"{death}: an instant is archived twice"
    assert_no_hole(timeline, death)


def assert_no_hole(timeline: Timeline, death: str) -> None:
    """Whatever is older than the active timeline counts as completed, and nothing else does."""
    for instant in timeline.instants():
        assert timeline.is_completed(instant.requested), f"{death}: {instant} is in a hole"


@dataclass(frozen=True)
class Victim:
    """What dies, and how it is set."""

    name: str
    operation: Callable[[ServiceWorld, Storage], object]
    prepare: Callable[[ServiceWorld], object]

    def __str__(self) -> str:
        return self.name


def archive_some(world: ServiceWorld, storage: Storage) -> None:
    assert archive(world.context(50, storage, **FEW))


def archive_and_merge(world: ServiceWorld, storage: Storage) -> None:
    assert archive(world.context(50, storage, **BY_TWOS))


def merge(world: ServiceWorld, storage: Storage) -> None:
    assert run_timeline_compaction(world.context(50, storage, **BY_TWOS))


def take_back_one(world: ServiceWorld) -> None:
    """A rollback on the timeline, whose sweep is done."""
    world.table(40).rollback(world.table(40).timeline().completed()[-1].requested)
    world.clock.advance(SWEPT_AFTER_MS)
    world.write(*(updated(2, ts=at) for at in range(4, 8)))


def archive_before(world: ServiceWorld) -> None:
    take_back_one(world)
    archive(world.context(41, **FEW))
    world.write(updated(2, ts=9), updated(2, ts=10))


def archive_twice_before(world: ServiceWorld) -> None:
    archive_before(world)
    archive(world.context(42, **FEW))


VICTIMS = (
    Victim("archive", archive_some, take_back_one),
    Victim("archive and merge", archive_and_merge, archive_before),
    Victim("merge", merge, archive_twice_before),
)


def deaths(
    before: ServiceWorld, operation: Callable[[ServiceWorld, Storage], object]
) -> Iterator[tuple[str, ServiceWorld]]:
    rehearsal = before.copy()
    faulty = FaultyStorage(rehearsal.storage, FaultPlan(), rehearsal.clock)
    operation(rehearsal, faulty)
    plans = list(crash_plans(faulty.calls))
    assert len(plans) > 10
    for plan in plans[::STRIDE]:
        world = before.copy()
        with suppress(Crashed):
            operation(world, FaultyStorage(world.storage, plan, world.clock))
        yield f"replay with plan {str(plan)!r}", world


@pytest.mark.parametrize("victim", VICTIMS, ids=str)
def test_an_archival_that_dies_leaves_every_instant_once(victim: Victim) -> None:
    world = new_service_world(COW, inserted(4), updated(2, ts=2), updated(2, ts=3))
    victim.prepare(world)
    before, rows = union(timeline_of(world.storage)), world.rows()
    for death, left in deaths(world, victim.operation):
        assert_once(left.storage, timeline_of(left.storage), before, death)
        archive(left.context(60, **FEW))
        run_timeline_compaction(left.context(61, **BY_TWOS))
        assert_once(left.storage, timeline_of(left.storage), before, f"{death}, gone on")
        if IS_SIMULATION:
            assert left.rows() == rows, f"{death}: rows"


@pytest.mark.parametrize("victim", VICTIMS[:1], ids=str)
def test_after_a_death_and_another_archival_nothing_is_left_of_archived_instants(
    victim: Victim,
) -> None:
    world = new_service_world(COW, inserted(4), updated(2, ts=2), updated(2, ts=3))
    victim.prepare(world)
    for death, left in list(deaths(world, victim.operation))[::STRIDE]:
        left.write(updated(2, ts=11), updated(2, ts=12))
        before = union(timeline_of(left.storage))
        done = archive(left.context(60, **FEW))
        assert done, f"{death}: nothing was archived"
        assert_once(left.storage, timeline_of(left.storage), before, death)
        active = {one.requested for one in left.table(61).timeline().instants}
        ledgers = {path.rpartition("/")[2] for path in ledger_folders(left)}
        gone = {one.requested for one in timeline_of(left.storage).instants()} - active
        assert gone, death
        assert not ledgers & gone, f"{death}: a ledger is left"


def ledger_folders(world: ServiceWorld) -> tuple[str, ...]:
    return world.storage.list(".hoodie/.lakewarden/ledger").folders


def archive_metadata_timeline(world: ServiceWorld, storage: Storage) -> None:
    own = storage.below(".hoodie/metadata")
    data = load_snapshot(storage).timeline.active
    done = archive_metadata(
        own,
        load_active(own, data.layout),
        data,
        ArchiveLimits(2, 3),
        LsmLimits(batch_size=2),
        deltacommits=2,
    )
    assert done


def test_an_archival_of_the_metadata_table_that_dies_leaves_every_instant_once() -> None:
    world = new_service_world(Shape("cow"), inserted(4))
    world.write(*(updated(2, ts=at) for at in range(2, 15)))
    archive(world.context(41, **FEW))
    own = world.storage.below(".hoodie/metadata")
    layout = load_snapshot(world.storage).config.layout
    before, rows = union(Timeline.load(own, layout)), world.rows()
    for death, left in deaths(world, archive_metadata_timeline):
        own = left.storage.below(".hoodie/metadata")
        assert_once(own, Timeline.load(own, layout), before, death)
        with suppress(AssertionError):
            # It may have archived enough already.
            archive_metadata_timeline(left, left.storage)
        assert_once(own, Timeline.load(own, layout), before, f"{death}, gone on")
    assert left.rows() == rows
