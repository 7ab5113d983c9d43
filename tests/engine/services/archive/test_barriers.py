"""What holds an archival back, on real tables; and pasts that must stay refused after it."""

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.services.archive.run import Archived, archive
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.services.retention.archive_plan import ArchiveHold
from lakewarden.engine.services.savepoint.run import delete_savepoint, savepoint
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.timeline.archived.reader import LsmArchive
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.start import start
from lakewarden.engine.transaction.sweep.sweep import sweep
from tests.crash.dying_operations import DEAD_AFTER_MS, SWEPT_AFTER_MS
from tests.engine.services.service_table import ServiceWorld, inserted, new_service_world, updated
from tests.writing.model import SCHEMA
from tests.writing.shapes import Shape

COW = Shape("cow", has_metadata=False)
MOR = Shape("mor", has_metadata=False)
HISTORY = ".hoodie/timeline/history"
FEW = {
    "hoodie__keep__min__commits": "2",
    "hoodie__keep__max__commits": "3",
    "hoodie__clean__commits__retained": "1",
    "hoodie__compact__inline__max__delta__commits": "1",
}


def archived(world: ServiceWorld) -> Archived:
    return archive(world.context(60, **FEW))


def assert_held(world: ServiceWorld, hold: ArchiveHold, instant: str | None) -> None:
    held = archived(world).held
    assert held is not None
    assert (held.hold, held.instant) == (hold, instant)


def test_nothing_goes_past_an_instant_whose_writer_may_still_leave_files() -> None:
    world = new_service_world(COW, inserted(), updated(ts=2))
    newest = world.table(40).timeline().completed()[-1].requested
    world.table(40).rollback(newest)
    world.write(*(updated(ts=at) for at in range(3, 8)))
    assert_held(world, ArchiveHold.SWEEP, newest)
    # A paused attempt wakes up and leaves its file after all; readers must not take it for old.
    late = next(entry for entry in world.storage.walk("p=a") if entry.name.endswith(".parquet"))
    instant = late.name.rpartition("_")[2]
    world.storage.put(late.path.replace(instant, f"{newest}.parquet"), b"late")
    rows = world.rows(use_metadata=False)
    world.clock.advance(SWEPT_AFTER_MS)
    sweep(world.context(41))
    done = archived(world)
    assert newest < done.instants[-1].requested
    assert world.rows(use_metadata=False) == rows


def test_an_instant_that_java_completed_stays_while_our_attempt_at_it_lives() -> None:
    world = new_service_world(MOR, inserted(), updated(ts=2))
    answer = schedule(world.context(40), COMPACTION, PlanRequest(cancellable=False))
    assert isinstance(answer, Scheduled)
    assert start(world.context(41), answer.instant).attempt is not None
    folder = ".hoodie/timeline"
    deltacommit = world.table(42).timeline().completed()[-1]
    content = world.storage.read(world.table(42).timeline().path(deltacommit))
    completed = f"{int(answer.instant) + 5}"
    world.storage.put(f"{folder}/{answer.instant}_{completed}.commit", content)
    world.write(*(updated(ts=at) for at in range(3, 8)))
    assert_held(world, ArchiveHold.OPEN, answer.instant)
    world.clock.advance(DEAD_AFTER_MS)
    assert answer.instant in {one.requested for one in archived(world).instants}


def test_a_metadata_table_that_was_never_compacted_holds_everything() -> None:
    world = new_service_world(Shape("cow"), inserted(), *(updated(2, ts=at) for at in range(2, 6)))
    done = archived(world)
    assert not done
    assert done.held is not None
    assert done.held.hold is ArchiveHold.METADATA
    assert "never compacted" in done.held.why


def test_nothing_goes_that_the_metadata_table_has_in_logs_only() -> None:
    world = new_service_world(Shape("cow"), inserted(), *(updated(2, ts=at) for at in range(2, 15)))
    done = archived(world)
    assert done
    assert done.held is not None
    assert done.held.hold is ArchiveHold.METADATA
    assert done.oldest_kept is not None
    compacted = done.held.instant or ""
    assert (done.oldest_kept.completed or "") > compacted
    assert all((one.completed or "") <= compacted for one in done.instants)
    assert world.rows() == world.rows(use_metadata=False)


def test_a_past_that_was_cleaned_stays_refused_when_the_clean_is_archived() -> None:
    world = new_service_world(COW, inserted(), *(updated(ts=at) for at in range(2, 5)))
    table, first = world.table(70), world.table(70).timeline().completed()[0]
    assert clean(world.context(40, **FEW))
    world.write(*(updated(ts=at) for at in range(5, 9)))
    before = refusals(world, first.requested)
    assert before == ["history_cleaned", "history_cleaned"]
    archived(world)
    kinds = {one.action for one in LsmArchive(world.storage, HISTORY).instants()}
    assert kinds == {Action.COMMIT, Action.CLEAN}
    assert not table.timeline().completed((Action.CLEAN,))
    assert refusals(world, first.requested) == before


def refusals(world: ServiceWorld, instant: str) -> list[str]:
    """What a reader is told of a past, and of the changes that ended there."""
    table = world.table(71)
    completed = load_snapshot(world.storage).timeline.completion_time(instant)
    found = []
    for ask in (
        lambda: table.read_arrow(as_of=instant),
        lambda: table.changes_arrow("0", completed),
    ):
        with pytest.raises(InvalidRequest) as caught:
            ask()
        found.append(caught.value.code)
    return found


def test_columns_of_a_past_are_known_when_it_is_archived() -> None:
    world = new_service_world(COW, inserted())
    narrow = world.table(40).timeline().completed()[0].requested
    more = inserted().table().append_column("more", inserted().table()["name"])
    world.table(41).upsert(more, evolve=True)
    wide = world.table(40).timeline().completed()[1].requested
    for _ in range(4):
        world.clock.advance(1000)
        world.table(42).upsert(more, evolve=True)
    archived(world)
    state = load_snapshot(world.storage)
    assert narrow < wide < (state.timeline.first_active or "")
    assert state.schema(narrow).columns.names == SCHEMA.names
    assert state.schema(wide).columns.names == [*SCHEMA.names, "more"]
    assert state.schema().columns.names == [*SCHEMA.names, "more"]


def test_columns_of_a_past_are_known_when_it_is_archived_beyond_a_savepoint() -> None:
    world = new_service_world(COW, inserted())
    kept = savepoint(world.context(40)).instant
    more = inserted().table().append_column("more", inserted().table()["name"])
    for _ in range(5):
        world.clock.advance(1000)
        world.table(41).upsert(more, evolve=True)
    wide = world.table(42).timeline().completed()[1].requested
    assert archive(world.context(42, **FEW, hoodie__archive__beyond__savepoint="true"))
    state = load_snapshot(world.storage)
    assert wide not in {one.requested for one in state.timeline.active.completed()}
    assert state.schema(wide).columns.names == [*SCHEMA.names, "more"]
    assert state.schema(kept).columns.names == SCHEMA.names


def test_beyond_a_savepoint_its_write_stays_active_and_readers_see_no_difference() -> None:
    world = new_service_world(MOR, inserted(), updated(ts=2))
    kept = savepoint(world.context(40)).instant
    world.write(*(updated(ts=at) for at in range(3, 8)))
    rows, past = world.rows(), world.table(41).read_arrow(as_of=kept)
    assert_held(world, ArchiveHold.SAVEPOINT, kept)
    beyond = world.context(42, **FEW, hoodie__archive__beyond__savepoint="true")
    done = archive(beyond)
    assert kept not in {one.requested for one in done.instants}
    assert max(one.requested for one in done.instants) > kept
    assert world.rows() == rows
    assert world.table(43).read_arrow(as_of=kept).equals(past)
    delete_savepoint(world.context(44), kept)
    world.write(updated(ts=9), updated(ts=10))
    assert kept in {one.requested for one in archived(world).instants}
