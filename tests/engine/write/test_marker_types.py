"""Markers of a write: files of their own, one list, or both; what is there is always announced."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest

from lakewarden.engine.file_groups.file_names import parse_file_name
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.testing.fault_plan import FaultPlan, StorageCall, crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.state.markers import (
    TEMP_FOLDER,
    MarkerType,
    marker_folder,
    read_announcements,
)
from lakewarden.engine.write import operations
from lakewarden.engine.write.writer import TableWriter
from tests.crash.dying_operations import DEAD_AFTER_MS
from tests.engine.services.service_table import (
    COW,
    MOR,
    ServiceWorld,
    contents,
    inserted,
    new_service_world,
    updated,
)
from tests.writing.model import Write, contents_of
from tests.writing.shapes import Shape

PARTITIONS = "abc"
FIRST = inserted(3, partitions=PARTITIONS)
# Known keys in all partitions, and new ones in one more: logs, base files and a new file group.
NEXT = Write("upsert", (*updated(2, partitions="ab").rows, *inserted(5, partitions="e").rows))
DIRECT, LIST = MarkerType.DIRECT, MarkerType.TIMELINE_SERVER_BASED
SEVERAL = {"hoodie__write__concurrency__mode": "optimistic_concurrency_control"}


def typed(name: str) -> dict[str, str]:
    return {"hoodie__write__markers__type": name}


def written(
    world: ServiceWorld, write: Write, plan: FaultPlan, settings: dict[str, str]
) -> tuple[StorageCall, ...]:
    """Carry out a write on a storage that may end it; the calls that it made."""
    storage = FaultyStorage(world.storage, plan)
    with suppress(Crashed):
        TableWriter(world.context(60, storage, **settings)).write(operations.upsert(write.table()))
    return storage.calls


def marker_puts(settings: dict[str, str], write: Write = NEXT) -> list[str]:
    world = new_service_world(COW, FIRST)
    calls = written(world, write, FaultPlan(), settings)
    places = [one.path for one in calls if one.operation == "put" and TEMP_FOLDER in one.path]
    return [path.removeprefix(f"{TEMP_FOLDER}/").partition("/")[2] for path in places]


def test_a_single_writer_lists_its_files_in_two_requests() -> None:
    assert marker_puts({}) == ["MARKERS.type", "MARKERS0"]


def test_where_others_write_each_file_has_a_marker_of_its_own() -> None:
    assert len(marker_puts(SEVERAL)) == len(marker_puts(typed("DIRECT"))) == 3


def test_where_others_look_for_markers_they_find_both_types() -> None:
    detecting = {"hoodie__write__concurrency__early__conflict__detection__enable": "true"}
    assert marker_puts({**SEVERAL, **detecting}) == marker_puts(typed("both"))


def test_a_write_to_one_file_group_leaves_one_marker() -> None:
    one = Write("upsert", FIRST.rows[:1])
    (path,) = marker_puts({}, one)
    assert path.endswith(".parquet.marker.MERGE")
    assert marker_puts(typed("timeline_server_based"), one) == ["MARKERS.type", "MARKERS0"]


def test_with_both_types_the_list_comes_first() -> None:
    both = marker_puts(typed("both"))
    assert both[:2] == ["MARKERS.type", "MARKERS0"]
    assert len(both) == 2 + 3
    assert all(".marker." in path for path in both[2:])


@dataclass(frozen=True)
class Case:
    shape: Shape
    type: str

    def __str__(self) -> str:
        return f"{self.shape.type}-{self.type}"

    def begun(self) -> ServiceWorld:
        return new_service_world(self.shape, FIRST)


CASES = [Case(COW, "TIMELINE_SERVER_BASED"), Case(MOR, "BOTH")]


def deaths(case: Case) -> Iterator[FaultPlan]:
    """The write dies at each call from its first marker to its last file."""
    calls = written(case.begun(), NEXT, FaultPlan(), typed(case.type))
    places = (one for one in calls if one.operation in ("put", "close"))
    yield from crash_plans(one for one in places if one.path.startswith((TEMP_FOLDER, "p=")))


def data_files(storage: Storage, instant: str) -> set[str]:
    found = (entry for entry in storage.walk("") if not entry.path.startswith(".hoodie/"))
    return {
        entry.path
        for entry in found
        if (named := parse_file_name(entry.name, 1)) is not None and named.instant == instant
    }


@pytest.mark.parametrize("case", CASES, ids=str)
def test_wherever_a_write_dies_its_lists_name_all_its_files_and_it_is_undone(case: Case) -> None:
    before = case.begun()
    for plan in deaths(case):
        world = before.copy()
        written(world, NEXT, plan, typed(case.type))
        pending = list(world.snapshot().timeline.active.pending())
        for instant in (one.requested for one in pending):
            marked = read_announcements(world.storage, instant)
            listed = {one.file.path for one in marked if one.type is LIST}
            assert data_files(world.storage, instant) <= listed, plan
            assert {one.file.path for one in marked if one.type is DIRECT} <= listed, plan
            names = {entry.name for entry in world.storage.walk(marker_folder(instant))}
            assert all(".marker." in name or name.startswith("MARKERS") for name in names), plan
        world.clock.advance(DEAD_AFTER_MS)
        recover_failed_instants(world.context(70))
        for instant in (one.requested for one in pending):
            assert not data_files(world.storage, instant), plan
            assert not world.storage.walk(marker_folder(instant)), plan
        writes = (FIRST,) if pending else (FIRST, NEXT)
        assert contents_of(world.table(71).read_arrow()) == contents(case.shape, *writes), plan
