"""Savepoints: what they list, what they refuse, and that a crash leaves one or none."""

from contextlib import suppress

import pytest

from lakewarden.engine.formats.instant_metadata import clean as clean_payload
from lakewarden.engine.formats.instant_metadata import savepoint as payload
from lakewarden.engine.kernel.clock import Clock
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.services.clean.draft import CleanRequest, content_of, draft_clean
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.retention.settings import CleanRetention
from lakewarden.engine.services.savepoint.run import delete_savepoint, list_savepoints, savepoint
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.testing.fault_plan import FaultPlan
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.attempts.publish import publish
from tests.crash.dying_operations import killed
from tests.engine.services.service_table import (
    COW,
    ServiceWorld,
    contents,
    inserted,
    new_service_world,
    updated,
)
from tests.engine.transaction.hooked import Hook
from tests.writing.model import contents_of
from tests.writing.shapes import Shape

LISTING = Shape("cow", has_metadata=False)
MOR_LISTING = Shape("mor", has_metadata=False)


def content_at(world: ServiceWorld, instant: str) -> payload.SavepointMetadata:
    active = world.table(97).timeline()
    (found,) = [one for one in active.savepoints() if one.requested == instant]
    return payload.decode(active.read(found), "savepoint")


def test_it_lists_the_files_of_its_moment_as_java_does() -> None:
    world = new_service_world(MOR_LISTING, inserted(2), updated(2))
    first = world.table(97).timeline().completed()[0].requested
    then = {
        slice_.partition: [slice_.base_file.name]
        for slice_ in world.table(97).file_slices(as_of=first)
        if slice_.base_file is not None
    }
    made = savepoint(world.context(51), first, user="me", comment="why")
    metadata = content_at(world, first)
    listed = metadata.partition_metadata
    assert {name: list(one.savepoint_data_file) for name, one in listed.items()} == then
    assert (metadata.savepointed_by, metadata.comments, metadata.version) == ("me", "why", 1)
    assert metadata.savepointed_at == made.saved_at_ms == world.clock.now_ms()
    folder = world.storage.list(".hoodie/timeline").files
    names = sorted(entry.name for entry in folder if "savepoint" in entry.name)
    assert names == [f"{first}.savepoint.inflight", f"{first}_{made.completed}.savepoint"]


def test_logs_of_later_instants_are_not_listed_and_earlier_ones_newest_first() -> None:
    world = new_service_world(MOR_LISTING, inserted(1), updated(1), updated(1, 3), updated(1, 4))
    *_, third, _ = (one.requested for one in world.table(97).timeline().completed())
    savepoint(world.context(51), third)
    (listed,) = content_at(world, third).partition_metadata.values()
    _, *logs = listed.savepoint_data_file
    instants = [name.partition("_")[2].partition(".")[0] for name in logs]
    assert instants == sorted(instants, reverse=True)
    assert instants[0] == third
    assert len(instants) == 2


def test_without_a_name_it_is_made_at_the_newest_write_and_twice_is_once() -> None:
    world = new_service_world(LISTING, inserted(2), updated(2))
    newest = world.table(97).timeline().completed()[-1].requested
    made = savepoint(world.context(51))
    again = savepoint(world.context(52), newest, comment="another one")
    assert made.instant == newest
    assert (again.was_there, again.comment) == (True, "")
    assert list_savepoints(world.context(53)) == (made,)


def test_one_that_was_deleted_is_gone() -> None:
    world = new_service_world(LISTING, inserted(2))
    made = savepoint(world.context(51))
    assert delete_savepoint(world.context(52), made.instant) == made
    assert list_savepoints(world.context(53)) == ()
    assert not [e for e in world.storage.list(".hoodie/timeline").files if "savep" in e.name]
    with pytest.raises(InvalidRequest, match="The table has no savepoint"):
        delete_savepoint(world.context(54), made.instant)


@pytest.mark.parametrize(("instant", "code"), [("20990101000000000", "unknown_instant")])
def test_what_is_no_write_is_refused(instant: str, code: str) -> None:
    world = new_service_world(LISTING, inserted(2))
    with pytest.raises(InvalidRequest) as refused:
        savepoint(world.context(51), instant)
    assert refused.value.code == code


def test_a_write_under_way_is_refused() -> None:
    world = new_service_world(LISTING, inserted(2))
    pending = publish(world.context(50), Action.COMMIT, claims=False).instant
    with pytest.raises(InvalidRequest) as refused:
        savepoint(world.context(51), pending)
    assert refused.value.code == "not_completed"


def test_what_is_cleaned_already_is_refused() -> None:
    world = new_service_world(COW, inserted(2), *(updated(2, ts) for ts in range(2, 5)))
    first = world.table(97).timeline().completed()[0].requested
    clean(world.context(50, hoodie__clean__commits__retained=1))
    with pytest.raises(InvalidRequest) as refused:
        savepoint(world.context(51), first)
    assert refused.value.code == "files_cleaned"


def test_what_a_pending_clean_is_about_to_delete_is_refused() -> None:
    world = new_service_world(LISTING, inserted(2), *(updated(2, ts) for ts in range(2, 5)))
    context = world.context(50)
    drafted = draft_clean(context, world.snapshot(), CleanRetention(commits=1), CleanRequest())
    plan = clean_payload.encode_plan(content_of(context.storage, drafted))
    publish(context, Action.CLEAN, plan, claims=False)
    first, *_, newest = world.table(97).timeline().completed()
    with pytest.raises(Conflict) as refused:
        savepoint(world.context(51), first.requested)
    assert refused.value.code == "files_being_cleaned"
    assert savepoint(world.context(52)).instant == newest.requested


@pytest.mark.parametrize("is_through", [True, False], ids=["cleaned", "being cleaned"])
def test_what_was_cleaned_while_it_paused_is_not_kept(*, is_through: bool) -> None:
    """It pauses after each of its calls until a clean has completed, or has died half way."""
    origin = new_service_world(LISTING, inserted(2), *(updated(2, ts) for ts in range(2, 5)))
    first = origin.table(97).timeline().completed()[0].requested
    shared = {"hoodie__write__lock__provider": "filesystem"}
    counting = Hook(1 << 30, lambda: None)
    rehearsal = origin.copy()
    savepoint(rehearsal.context(51, counting.storage(rehearsal.storage), **shared), first)
    refused = set()
    for at in range(1, counting.calls + 1):
        world = origin.copy()

        def others_clean(world: ServiceWorld = world) -> None:
            world.clock.advance(200_000)
            storage = world.storage if is_through else DiesDeleting(world.storage, world.clock)
            retained = {"hoodie__clean__commits__retained": 1}
            with suppress(Crashed):
                clean(world.context(60, storage, **shared, **retained))

        try:
            hook = Hook(at, others_clean)
            savepoint(world.context(51, hook.storage(world.storage), **shared), first)
        except (Conflict, InvalidRequest) as error:
            refused.add(error.code)
            assert not list_savepoints(world.context(62)), f"call {at}"
        else:
            assert world.table(63).read_arrow(as_of=first).num_rows == 2, f"call {at}"
            world.clock.advance(600_000)
            clean(world.context(61, hoodie__clean__commits__retained=1, **shared))
            assert world.table(63).read_arrow(as_of=first).num_rows == 2, f"call {at}"
    assert refused & {"savepoint_overtaken", "files_being_cleaned"}


class DiesDeleting(FaultyStorage):
    """Dies when a data file is to be deleted."""

    def __init__(self, inner: Storage, clock: Clock) -> None:
        super().__init__(inner, FaultPlan(), clock)

    def delete(self, path: str) -> None:
        if path.endswith(".parquet"):
            raise Crashed(path)
        super().delete(path)


def test_wherever_it_dies_there_is_a_whole_one_or_none() -> None:
    history = (inserted(2), updated(2))
    before = new_service_world(LISTING, *history)
    newest = before.table(97).timeline().completed()[-1].requested

    def make(world: ServiceWorld, stage: Storage) -> object:
        return savepoint(world.context(50, stage))

    for death in killed(before, make).values():
        world = ServiceWorld(death.world.clock, death.world.storage)
        assert world.rows() == contents(LISTING, *history), str(death)
        there = list_savepoints(world.context(60))
        world.clock.advance(600_000)
        clean(world.context(61))
        assert list_savepoints(world.context(62)) == there, str(death)
        assert not world.table(97).timeline().pending(frozenset(Action)), str(death)
        made = savepoint(world.context(63))
        assert made.was_there == bool(there), str(death)
        assert contents_of(world.table(97).read_arrow(as_of=newest)) == world.rows()


def test_wherever_its_removal_dies_there_is_a_whole_one_or_none() -> None:
    before = new_service_world(LISTING, inserted(2))
    made = savepoint(before.context(51))

    def remove(world: ServiceWorld, stage: Storage) -> object:
        return delete_savepoint(world.context(50, stage), made.instant)

    for death in killed(before, remove).values():
        world = ServiceWorld(death.world.clock, death.world.storage)
        assert list_savepoints(world.context(60)) in ((), (made,)), str(death)
        world.clock.advance(600_000)
        clean(world.context(61))
        assert not world.table(97).timeline().pending(frozenset(Action)), str(death)
