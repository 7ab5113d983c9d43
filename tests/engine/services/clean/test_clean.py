"""Cleaning a table: what is gone, what a reader sees, what is answered when nothing is done."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.formats.instant_metadata import clean as payload
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.services.clean.draft import CleanRequest
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.services.retention.clean_plan import Cleaned, FileHold
from lakewarden.engine.services.savepoint.run import delete_savepoint, savepoint
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.attempts.publish import publish, to_inflight
from lakewarden.engine.transaction.state.markers import MarkedFile, MarkerKind, leave_marker
from tests.engine.services.service_table import (
    COW,
    MOR,
    ServiceWorld,
    contents,
    inserted,
    new_service_world,
    row,
    rows,
    updated,
)
from tests.engine.transaction.hooked import Hook
from tests.engine.transaction.just_before import LOCK_IN_A_FILE, JustBefore
from tests.simulation.scenario import SWEPT_AFTER_MS
from tests.writing.model import Write, contents_of
from tests.writing.shapes import Shape

HISTORY = (inserted(2), *(updated(2, ts=ts) for ts in range(2, 6)))
LISTING = Shape("cow", has_metadata=False)


def cleaned(
    world: ServiceWorld, plan_request: CleanRequest | None = None, **settings: object
) -> Cleaned:
    given = {"hoodie__clean__commits__retained": 2, **settings}
    return clean(world.context(50, **given), plan_request)


def files_of(world: ServiceWorld) -> set[str]:
    listed = StorageListing(world.storage).files()
    return {file.name for files in listed.values() for file in files}


def scheduled(world: ServiceWorld, seed: int) -> str:
    """A plan of compaction that waits."""
    plan = schedule(world.context(seed), COMPACTION, PlanRequest())
    assert isinstance(plan, Scheduled)
    return plan.instant


def compacted(world: ServiceWorld, seed: int) -> None:
    execute(world.context(seed), COMPACTION, scheduled(world, seed))
    world.clock.advance(1000)


def only_partition(letter: str, ts: int) -> Write:
    return Write("upsert", rows([f"k{'ab'.index(letter)}"], ts, letter))


@pytest.mark.parametrize("shape", [COW, LISTING], ids=str)
def test_what_is_older_than_the_retained_commits_is_gone_for_good(shape: Shape) -> None:
    world = new_service_world(shape, *HISTORY)
    done = cleaned(world)
    assert done
    assert done.files_deleted == 4
    assert done.partitions == ("p=a", "p=b")
    assert done.bytes_deleted > 0
    assert len(files_of(world)) == 10 - 4
    assert world.rows() == world.rows(use_metadata=False) == contents(shape, *HISTORY)
    assert world.differences_of_listings() == set()
    assert not world.table(97).timeline().pending()


def test_every_retained_commit_stays_readable_and_so_does_the_one_that_they_build_upon() -> None:
    world = new_service_world(COW, *HISTORY)
    done = cleaned(world)
    writes = world.table(97).timeline().completed()
    for number, instant in enumerate(writes):
        read = world.table(97).read_arrow
        # A reader as of a moment before the first retained one finds the slices before it.
        if instant.requested >= writes[-3].requested:
            found = contents_of(read(as_of=instant.requested))
            assert found == contents(COW, *HISTORY[: number + 1])
        else:
            with pytest.raises(InvalidRequest, match="can no longer read"):
                read(as_of=instant.requested)
    assert done.earliest_retained == writes[-2].requested


def test_a_dry_run_tells_the_same_and_changes_nothing() -> None:
    world = new_service_world(COW, *HISTORY)
    before = {entry.path for entry in world.storage.walk("")}
    context = world.context(50, hoodie__clean__commits__retained=2)
    reported = clean(context, dry_run=True)
    assert {entry.path for entry in world.storage.walk("")} == before
    assert reported.is_dry_run
    done = cleaned(world)
    assert replace(reported, is_dry_run=False, remains_deleted=0) == replace(
        done, instant=None, completed=None, remains_deleted=0
    )


def test_nothing_to_do_leaves_no_instant_and_says_why() -> None:
    world = new_service_world(COW, inserted(), updated())
    done = cleaned(world)
    assert not done
    assert "2 commits, and 2 are retained" in (done.why_nothing or "")
    assert not world.table(97).timeline().completed((Action.CLEAN,))


def test_compacted_slices_go_with_their_logs() -> None:
    world = new_service_world(MOR, inserted(), updated(ts=2), updated(ts=3))
    compacted(world, 60)
    world.write(updated(ts=4), updated(ts=5))
    compacted(world, 61)
    world.write(updated(ts=6))
    done = cleaned(world)
    assert done.files_deleted == 6, "a base file and two logs in each partition"
    assert world.rows() == world.rows(use_metadata=False)
    assert world.rows() == contents(MOR, inserted(), updated(ts=6))
    assert world.differences_of_listings() == set()


def test_the_slices_of_a_plan_stay_until_it_is_carried_out() -> None:
    world = new_service_world(MOR, inserted(), updated(ts=2))
    plan = scheduled(world, 60)
    world.write(*(updated(ts=ts) for ts in range(3, 7)))
    done = cleaned(world)
    assert not done
    assert done.held_by == plan
    assert "Run it, or cancel it." in (done.why_nothing or "")
    assert "seconds ago" in (done.why_nothing or "")
    execute(world.context(61), COMPACTION, plan)
    world.write(updated(ts=7), updated(ts=8))
    assert cleaned(world).files_deleted == 4


def test_a_live_write_from_before_holds_the_horizon_back() -> None:
    world = new_service_world(COW, *HISTORY[:2])
    writer = world.context(70, hoodie__clean__failed__writes__policy="LAZY")
    attempt = publish(writer, Action.COMMIT, claims=True).attempt
    assert attempt is not None
    to_inflight(writer, attempt)
    lazy = {"hoodie__clean__failed__writes__policy": "LAZY"}
    for ts in range(3, 7):
        world.clock.advance(1000)
        options = {"hoodie.clean.failed.writes.policy": "LAZY"}
        world.table(71 + ts).upsert(updated(ts=ts).table(), options=options)
    done = cleaned(world, **lazy)
    assert done.held_by == attempt.instant
    assert not done
    attempt.stop()
    world.clock.advance(600_000)
    assert cleaned(world, **lazy).files_deleted > 0


def test_a_savepoint_keeps_its_files_and_its_moment_readable() -> None:
    world = new_service_world(COW, *HISTORY[:2])
    saved = savepoint(world.context(51))
    world.write(*HISTORY[2:])
    done = cleaned(world)
    assert done.held_by == saved.instant
    assert {one.held_by for one in done.kept if one.hold is FileHold.SAVEPOINT} == {saved.instant}
    as_saved = contents_of(world.table(97).read_arrow(as_of=saved.instant))
    assert as_saved == contents(COW, *HISTORY[:2])
    delete_savepoint(world.context(52), saved.instant)
    again = cleaned(world)
    assert again.files_deleted == 2
    assert f"savepoint {saved.instant} was deleted" in again.scope


def test_a_clean_gives_way_to_a_savepoint_made_after_it_was_drafted() -> None:
    world = new_service_world(COW, *HISTORY)
    oldest = world.snapshot().timeline.active.completed()[0].requested

    def make_savepoint() -> None:
        savepoint(world.context(51, **LOCK_IN_A_FILE), oldest)

    storage = JustBefore(world.storage, world.clock, make_savepoint)
    done = clean(world.context(50, storage, hoodie__clean__commits__retained=2, **LOCK_IN_A_FILE))
    assert storage.has_done_it
    assert done.held_by == oldest
    as_saved = contents_of(world.table(97).read_arrow(as_of=oldest))
    assert as_saved == contents(COW, HISTORY[0])


def test_what_was_cleaned_is_never_said_to_be_readable_again() -> None:
    world = new_service_world(COW, *HISTORY)
    oldest = [one.requested for one in world.table(97).timeline().completed()][:2]
    for instant in oldest:
        savepoint(world.context(51), instant)
    first = clean(world.context(50, hoodie__clean__commits__retained=1))
    for instant in oldest:
        delete_savepoint(world.context(52), instant)
    second = clean(world.context(53, hoodie__clean__commits__retained=2))
    assert second.files_deleted > 0
    assert second.earliest_retained == first.earliest_retained


def test_a_partition_that_was_deleted_vanishes() -> None:
    world = new_service_world(COW, inserted())
    world.write(Write("delete_partitions", partitions=("b",)))
    world.write(only_partition("a", 2), only_partition("a", 3))
    done = cleaned(world)
    assert done.partitions_deleted == ("p=b",)
    assert world.table(97).partitions() == ("p=a",)
    assert StorageListing(world.storage).partitions() == ("p=a",)
    world.write(only_partition("b", 4))
    assert world.table(97).partitions() == ("p=a", "p=b")
    assert world.rows() == world.rows(use_metadata=False)


def test_a_partition_that_somebody_is_about_to_write_to_stays() -> None:
    world = new_service_world(COW, inserted(2))
    world.write(Write("delete_partitions", partitions=("b",)))
    world.write(only_partition("a", 2), only_partition("a", 3))
    lazy = {"hoodie__clean__failed__writes__policy": "LAZY"}
    attempt = publish(world.context(70, **lazy), Action.COMMIT, claims=True).attempt
    assert attempt is not None
    file = MarkedFile("p=b", f"f_0-0-1_{attempt.instant}.parquet")
    leave_marker(world.storage, attempt.instant, file, MarkerKind.CREATE)
    done = cleaned(world, **lazy)
    assert done.files_deleted > 0
    assert done.partitions_deleted == ()
    assert StorageListing(world.storage).partitions() == ("p=a", "p=b")
    assert world.table(97).partitions() == ("p=a", "p=b")


def test_only_partitions_written_to_since_the_last_clean_are_looked_up() -> None:
    world = new_service_world(COW, *HISTORY)
    cleaned(world)
    world.write(*(only_partition("a", ts) for ts in range(7, 10)))
    done = cleaned(world)
    assert done.partitions == ("p=a", "p=b"), "the last of what was written to both of them"
    world.write(only_partition("a", 10))
    done = cleaned(world)
    assert done.partitions == ("p=a",)
    assert done.scope.startswith("1 partitions were checked")


def test_a_clean_of_some_partitions_is_made_up_for_by_the_next_one() -> None:
    world = new_service_world(COW, *HISTORY)
    first = cleaned(world, CleanRequest(partitions=("p=a",)))
    assert first.partitions == ("p=a",)
    second = cleaned(world)
    assert second.partitions == ("p=b",)
    assert "only some of them" in second.scope


def test_a_limit_cleans_commit_by_commit() -> None:
    world = new_service_world(COW, *HISTORY)
    steps = [cleaned(world, CleanRequest(max_commits=2)) for _ in range(3)]
    assert [one.files_deleted for one in steps] == [2, 2, 0]
    assert world.rows() == contents(COW, *HISTORY)


def test_versions_are_kept_as_many_as_are_set() -> None:
    world = new_service_world(COW, *HISTORY)
    context = world.context(50, hoodie__clean__fileversions__retained=1)
    done = clean(context)
    assert done.files_deleted == 8
    assert done.earliest_retained is None
    assert len(files_of(world)) == 2
    assert world.rows() == world.rows(use_metadata=False) == contents(COW, *HISTORY)


def test_hours_are_kept_as_many_as_are_set() -> None:
    world = new_service_world(COW, *HISTORY)
    world.clock.advance(5 * 3_600_000)
    world.write(updated(2, ts=7), updated(2, ts=8))
    done = clean(world.context(50, hoodie__clean__hours__retained=2))
    assert done.files_deleted == 8
    assert world.rows() == contents(COW, *HISTORY, updated(2, ts=8))


def test_a_clean_may_wait_until_it_is_time() -> None:
    world = new_service_world(COW, *HISTORY)
    trigger = {"hoodie__clean__trigger__max__commits": 3}
    waiting = CleanRequest(honour_trigger=True)
    assert cleaned(world, waiting, **trigger)
    world.write(updated(2, ts=7), updated(2, ts=8))
    before = {entry.path for entry in world.storage.walk("")}
    waits = cleaned(world, waiting, **trigger)
    assert not waits
    assert "2 commits have completed since the last clean" in (waits.why_nothing or "")
    assert {entry.path for entry in world.storage.walk("")} == before
    world.write(updated(2, ts=9))
    assert cleaned(world, waiting, **trigger)


def test_the_plan_and_the_outcome_are_what_java_writes() -> None:
    world = new_service_world(COW, *HISTORY)
    done = cleaned(world)
    active = world.table(97).timeline()
    (instant,) = active.completed((Action.CLEAN,))
    files = active.files_of(instant)
    assert files is not None
    assert files.requested is not None
    assert files.inflight is not None
    assert world.storage.read(files.inflight.entry.path) == b""
    plan = payload.decode_plan(world.storage.read(files.requested.entry.path), "plan")
    assert plan.version == 2
    assert plan.earliest_instant_to_retain is not None
    assert plan.earliest_instant_to_retain.timestamp == done.earliest_retained
    assert plan.earliest_instant_to_retain.action == "commit"
    assert plan.earliest_instant_to_retain.state == "COMPLETED"
    assert plan.last_completed_commit_timestamp == active.completed()[-1].requested
    metadata = payload.decode(active.read(instant), "clean")
    assert metadata.total_files_deleted == done.files_deleted
    assert metadata.earliest_commit_to_retain == done.earliest_retained
    for partition, listed in metadata.partition_metadata.items():
        planned = plan.file_paths_to_be_deleted_per_partition[partition]
        names = tuple((one.file_path or "").rpartition("/")[2] for one in planned)
        assert listed.delete_path_patterns == listed.success_delete_files == names
        assert listed.is_partition_deleted is False


def test_what_it_deletes_is_checked_by_another_road_first() -> None:
    world = new_service_world(COW, *HISTORY)
    context = world.context(50)
    live = world.slices()[0]
    assert live.base_file is not None
    path = world.storage.uri(live.path(live.base_file))
    plan = payload.CleanPlan(
        policy="KEEP_LATEST_COMMITS",
        file_paths_to_be_deleted_per_partition={
            live.partition: (payload.CleanFile(file_path=path),)
        },
    )
    publish(context, Action.CLEAN, payload.encode_plan(plan), claims=False)
    with pytest.raises(Exception, match="a read of the newest snapshot needs it"):
        cleaned(world)
    assert world.rows() == contents(COW, *HISTORY)


class PausedClean:
    """A clean that its publisher has left, and a process that stands still before it runs it."""

    def __init__(self) -> None:
        self.world = new_service_world(LISTING, *HISTORY)
        plan = payload.encode_plan(payload.CleanPlan(policy="KEEP_LATEST_COMMITS"))
        context = self.world.context(50)
        done = publish(context, Action.CLEAN, plan, claims=False)
        self.instant = done.instant
        self.requested = f".hoodie/timeline/{self.instant}.clean.requested"
        self.inflight = f".hoodie/timeline/{self.instant}.clean.inflight"

    def run(self, of: tuple[str, str], then: Callable[[], object]) -> Cleaned:
        """Run it; something else happens in a pause after one of its calls."""

        def pause() -> None:
            self.world.clock.advance(SWEPT_AFTER_MS)
            then()

        storage = Hook(1, pause, of=of).storage(self.world.storage)
        return clean(self.world.context(51, storage), CleanRequest(only_pending=True))

    def finish(self) -> None:
        (done,) = cleaned(self.world, CleanRequest(only_pending=True)).finished
        assert done.instant == self.instant

    def finish_and_archive(self) -> None:
        self.finish()
        for path in (self.requested, self.inflight):
            self.world.storage.delete(path)
        for entry in self.world.storage.list(".hoodie/timeline").files:
            if entry.name.startswith(self.instant):
                self.world.storage.delete(entry.path)


@pytest.mark.parametrize("ending", ["finish", "finish_and_archive"])
def test_a_clean_that_another_process_has_ended_is_superseded(ending: str) -> None:
    paused = PausedClean()
    with pytest.raises(Conflict) as raised:
        paused.run(("create_exclusive", paused.inflight), getattr(paused, ending))
    assert raised.value.code == "superseded"
    assert paused.world.rows() == contents(LISTING, *HISTORY)


def test_a_clean_whose_plan_is_gone_is_superseded() -> None:
    paused = PausedClean()
    ended = partial(paused.world.storage.delete, paused.requested)
    with pytest.raises(Conflict, match="Another process has ended this instant"):
        paused.run(("create_exclusive", paused.inflight), ended)


def test_an_inflight_file_that_came_after_its_clean_was_archived_is_removed() -> None:
    paused = PausedClean()
    paused.finish_and_archive()
    paused.world.storage.create_exclusive(paused.inflight, b"")
    assert cleaned(paused.world).files_deleted == 4
    assert not paused.world.table(97).timeline().pending()


def test_the_first_version_of_plans_names_files_without_addresses() -> None:
    world = new_service_world(COW, *HISTORY)
    (_, *old) = sorted(
        entry.name for entry in world.storage.list("p=a").files if entry.name.endswith("parquet")
    )
    oldest = min(old, key=lambda name: name.rpartition("_")[2])
    plan = payload.CleanPlan(
        policy="KEEP_LATEST_COMMITS",
        version=1,
        files_to_be_deleted_per_partition={"p=a": (oldest,)},
    )
    publish(world.context(50), Action.CLEAN, payload.encode_plan(plan), claims=False)
    done = cleaned(world)
    assert [one.files_deleted for one in done.finished] == [1]
    assert oldest not in files_of(world)
    assert world.rows() == world.rows(use_metadata=False) == contents(COW, *HISTORY)


def test_a_row_that_was_never_written_twice_is_never_cleaned() -> None:
    world = new_service_world(COW, Write("upsert", (row("k0", 1, "c"),)), *HISTORY)
    cleaned(world)
    assert row("k0", 1, "c") in world.rows()
