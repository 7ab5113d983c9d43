"""Archiving a table: what leaves, what is removed with it, and that readers see no difference."""

import pytest

from lakewarden.engine.kernel.errors import Conflict, Defect, InvalidRequest
from lakewarden.engine.services.archive.run import (
    archive,
    archive_if_due,
    move,
    run_timeline_compaction,
)
from lakewarden.engine.services.retention.archive_plan import ArchiveHold
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.archived.manifest import encode_manifest
from lakewarden.engine.timeline.archived.reader import LsmArchive
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.ledger.ledger import LEDGER_FOLDER, instants_with_ledger
from tests.engine.services.service_table import ServiceWorld, inserted, new_service_world, updated
from tests.writing.model import Write
from tests.writing.shapes import Shape

COW = Shape("cow", has_metadata=False)
HISTORY = ".hoodie/timeline/history"
FEW = {
    "hoodie__keep__min__commits": 2,
    "hoodie__keep__max__commits": 3,
    "hoodie__clean__commits__retained": 1,
}


def world_of(writes: int, shape: Shape = COW) -> ServiceWorld:
    return new_service_world(shape, inserted(), *(updated(ts=at) for at in range(2, writes + 1)))


def archived(world: ServiceWorld) -> list[str]:
    return [one.requested for one in LsmArchive(world.storage, HISTORY).instants()]


def active(world: ServiceWorld) -> list[str]:
    return [one.requested for one in world.table(90).timeline().instants]


def test_the_oldest_commits_move_from_the_timeline_to_the_archive() -> None:
    world = world_of(5)
    before, rows = active(world), world.rows()
    done = archive(world.context(**FEW))
    assert [one.requested for one in done.instants] == before[:3] == archived(world)
    assert active(world) == before[3:]
    assert done.oldest_kept is not None
    assert done.oldest_kept.requested == before[3]
    assert done.held is not None
    assert done.held.hold is ArchiveHold.KEPT
    assert done.files_deleted == 9
    assert world.rows() == rows


def test_a_dry_run_answers_the_same_and_changes_nothing() -> None:
    world = world_of(5)
    files = {entry.path: entry.modified_ms for entry in world.storage.walk("")}
    dry = archive(world.context(**FEW), dry_run=True)
    assert {entry.path: entry.modified_ms for entry in world.storage.walk("")} == files
    done = archive(world.context(**FEW))
    assert (dry.instants, dry.oldest_kept, dry.held) == (
        done.instants,
        done.oldest_kept,
        done.held,
    )
    assert dry.is_dry_run
    assert dry.files_deleted == 0


def test_a_second_archival_has_nothing_to_do_and_says_why() -> None:
    world = world_of(5)
    archive(world.context(**FEW))
    files = {entry.path for entry in world.storage.walk("")}
    again = archive(world.context(**FEW))
    assert not again
    assert again.why_nothing == "2 commits are active; archiving starts at 4."
    assert {entry.path for entry in world.storage.walk("")} == files


def test_ledgers_markers_and_signs_of_life_go_with_their_instants() -> None:
    world = world_of(5)
    oldest = active(world)[0]
    world.storage.put(f".hoodie/.temp/{oldest}/p=a/x.marker.CREATE", b"")
    world.storage.put(f".hoodie/.heartbeat/{oldest}", b"")
    done = archive(world.context(**FEW))
    gone = {one.requested for one in done.instants}
    left = [
        entry.path
        for entry in world.storage.walk(".hoodie")
        if not entry.path.startswith(HISTORY) and any(one in entry.path for one in gone)
    ]
    assert left == []
    assert not set(instants_with_ledger(world.storage)) & gone
    assert world.storage.list(LEDGER_FOLDER).folders


def test_a_backlog_is_archived_in_several_files_each_under_a_lock_of_its_own() -> None:
    world = world_of(1)
    newest = world.table(40).timeline()
    (instant,) = newest.completed()
    content = world.storage.read(newest.path(instant))
    for number in range(230):
        requested = int(instant.requested) - 5_000_000 + 2 * number
        path = f".hoodie/timeline/{requested}_{requested + 1}.commit"
        world.storage.put(path, content)
    rows, before = world.rows(), active(world)
    done = archive(world.context(**FEW, hoodie__commits__archival__batch=1))
    assert [one.requested for one in done.instants] == before[:-2] == archived(world)
    assert len(LsmArchive(world.storage, HISTORY).snapshot.files) == 3
    assert world.rows() == rows


def test_limits_that_contradict_each_other_are_refused_by_name() -> None:
    world = world_of(1)
    with pytest.raises(InvalidRequest) as caught:
        archive(world.context(hoodie__keep__min__commits=30, hoodie__keep__max__commits=30))
    assert caught.value.code == "wrong_limits"
    with pytest.raises(InvalidRequest) as caught:
        archive(world.context(hoodie__keep__min__commits=10))
    assert caught.value.code == "wrong_retention"


def test_replaced_files_keep_their_replacement_active_until_they_are_gone() -> None:
    world = new_service_world(COW, inserted(), Write("overwrite_partitions", inserted().rows))
    first, replacement = active(world)
    world.write(*(updated(ts=at) for at in range(3, 7)))
    rows = world.rows()
    done = archive(world.context(**FEW))
    assert done.held is not None
    assert (done.held.hold, done.held.instant) == (ArchiveHold.UNCLEANED, replacement)
    assert active(world)[0] == replacement
    assert world.rows() == rows
    replaced = [entry.path for entry in world.storage.walk("") if f"_{first}." in entry.path]
    for path in replaced:
        world.storage.delete(path)
    assert archive(world.context(**FEW))
    assert replacement in archived(world)
    assert world.rows() == rows


def test_an_archive_is_merged_by_itself_and_on_demand() -> None:
    world = world_of(4)
    for ts in range(5, 9):
        archive(world.context(**FEW))
        world.write(updated(ts=ts), updated(ts=ts))
    files = len(LsmArchive(world.storage, HISTORY).snapshot.files)
    assert files == 4
    by_twos = {"hoodie__timeline__compaction__batch__size": 2}
    instants = archived(world)
    dry = run_timeline_compaction(world.context(**by_twos), dry_run=True)
    assert not run_timeline_compaction(world.context())
    done = run_timeline_compaction(world.context(**by_twos))
    assert (done.files_before, done.files_after) == (4, 3) == (dry.files_before, dry.files_after)
    assert archived(world) == instants


def test_cleans_are_archived_with_the_writes_around_them() -> None:
    world = world_of(6)
    storage, first = world.storage, active(world)[0]
    clean = f"{int(first) + 1}"
    storage.put(f".hoodie/timeline/{clean}.clean.requested", b"plan")
    storage.put(f".hoodie/timeline/{clean}_{int(clean) + 1}.clean", b"done")
    archive(world.context(**FEW))
    (found,) = [
        one for one in LsmArchive(storage, HISTORY).instants() if one.action is Action.CLEAN
    ]
    assert found.requested == clean


def test_a_write_archives_only_when_that_is_due_and_not_switched_off() -> None:
    world = world_of(4)
    on = {"hoodie__archive__automatic": True}
    assert archive_if_due(world.context(**on)) is None
    assert archive_if_due(world.context(**FEW, hoodie__archive__automatic=False)) is None
    assert archive_if_due(world.context(**FEW, **on, hoodie__archive__async=True)) is None
    storage = FaultyStorage(world.storage)
    context = world.context(51, storage, **on)
    before = len(storage.calls)
    assert archive_if_due(context) is None
    assert len(storage.calls) - before <= 2
    assert archive_if_due(world.context(**FEW, **on))


def test_whoever_loses_the_lock_on_the_way_removes_nothing() -> None:
    world = world_of(5)
    timeline, lost = (
        world.table(40).timeline(),
        Conflict("lock_lost", what="It is lost.", why="It expired.", now="Try again."),
    )
    answers = iter([None, lost])

    def assert_held() -> None:
        if (answer := next(answers)) is not None:
            raise answer

    before = active(world)
    with pytest.raises(Conflict):
        move(world.storage, timeline, timeline.instants[:3], threads=1, assert_held=assert_held)
    assert active(world) == before
    done = archive(world.context(**FEW))
    assert done.found_archived == 3
    assert archived(world) == before[:3]


def test_nothing_leaves_the_timeline_that_is_not_found_in_the_archive() -> None:
    """Another archiver, whom our lock does not hold, puts its own manifest in place of ours."""

    class Overtaken(FaultyStorage):
        def put(self, path: str, payload: bytes) -> None:
            super().put(path, encode_manifest(()) if "/manifest_" in path else payload)

    world = world_of(5)
    timeline, before = world.table(40).timeline(), active(world)
    with pytest.raises(Defect) as raised:
        move(Overtaken(world.storage), timeline, timeline.instants[:3], threads=1)
    assert raised.value.code == "not_archived"
    assert active(world) == before
