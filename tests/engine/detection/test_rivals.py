"""Rivals: what a look costs, and that writes to other file groups are left alone."""

from dataclasses import replace

import pytest

from lakewarden.engine.conflicts.conflicts import ConflictStrategy
from lakewarden.engine.detection.rivals import Own, RivalFinder
from lakewarden.engine.detection.strategies import DETECTION, DetectionRules, Strategy
from lakewarden.engine.testing.fault_plan import FaultPlan
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.heartbeats import read_heartbeat, write_own_heartbeat
from lakewarden.engine.write import operations
from lakewarden.engine.write.writer import TableWriter
from tests.engine.services.service_table import (
    COW,
    ServiceWorld,
    inserted,
    new_service_world,
    rows,
    updated,
)
from tests.engine.transaction.hooked import Hook
from tests.rfc.live_writes import standing_write
from tests.rfc.plans import PAUSE_MS
from tests.writing.model import Write

PARTITIONS = "abcdef"
SEVERAL = {"hoodie__write__concurrency__mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
ON = {**SEVERAL, DETECTION.key.replace(".", "__"): "true"}
# Of an overlapping write its ledger is listed and read, and its heartbeat.
CALLS_OF_A_RIVAL = 3


class Look:
    """One write that looks again and again, and what its looks call."""

    def __init__(self, world: ServiceWorld, partition: str) -> None:
        (group,) = (one.key for one in world.slices() if one.key.partition == f"p={partition}")
        self._storage = FaultyStorage(world.storage, FaultPlan())
        own = Own(
            instant="99990101000000000",
            groups=frozenset({group}),
            snapshot=world.snapshot(),
            strategy=ConflictStrategy(),
        )
        rules = DetectionRules(strategy=Strategy.SIMPLE)
        self._finder = RivalFinder(world.context(62, self._storage, **ON), rules, own)

    def calls(self) -> tuple[str, int]:
        """The instant to give way to, and how many calls it took to find out."""
        before = len(self._storage.calls)
        rival = self._finder.find()
        return rival.instant if rival else "", len(self._storage.calls) - before


def stands(world: ServiceWorld, partition: str) -> str:
    place = PARTITIONS.index(partition)
    write = Write("upsert", rows((f"k{place}",), 5, partition))
    return standing_write(world, operations.upsert(write.table()), **ON)


def test_a_look_is_one_list_and_one_call_for_each_new_write_however_many_there_are() -> None:
    world = new_service_world(COW, inserted(6, partitions=PARTITIONS))
    look = Look(world, "f")
    assert look.calls() == ("", 1)
    stands(world, "a"), stands(world, "b"), stands(world, "c")
    assert look.calls() == ("", 1 + 3)
    assert look.calls() == ("", 1)
    stands(world, "d")
    assert look.calls() == ("", 1 + 1)


def test_liveness_is_asked_of_those_only_that_have_something_in_common() -> None:
    world = new_service_world(COW, inserted(6, partitions=PARTITIONS))
    look = Look(world, "f")
    stands(world, "a")
    rival = stands(world, "f")
    found, calls = look.calls()
    assert found == rival
    assert calls <= 1 + 2 + CALLS_OF_A_RIVAL
    world.clock.advance(PAUSE_MS)
    found, calls = look.calls()
    assert not found
    assert calls <= 1 + CALLS_OF_A_RIVAL


@pytest.mark.parametrize("apart_ms", [-240_000, 240_000])
def test_one_whose_clock_is_minutes_off_is_alive_while_its_heartbeats_follow_each_other(
    apart_ms: int,
) -> None:
    world = new_service_world(COW, inserted(6, partitions=PARTITIONS))
    look, rival = Look(world, "f"), stands(world, "f")
    first = read_heartbeat(world.storage, rival, 1)
    assert first is not None
    for sequence, found in ((1, ""), (2, rival), (3, rival)):
        at_ms = world.clock.now_ms() + apart_ms
        write_own_heartbeat(world.storage, replace(first, sequence=sequence, at_ms=at_ms))
        assert look.calls()[0] == found
        world.clock.advance(30_000)
    assert look.calls()[0] == rival
    world.clock.advance(PAUSE_MS + abs(apart_ms))
    assert not look.calls()[0]


WRITERS, GROUPS_EACH = 8, 16


class OnFirstFile(Hook):
    """Something that happens when a write has made its first data file."""

    def called(self, operation: str, arguments: tuple[object, ...]) -> None:
        path = str(arguments[0]) if arguments else ""
        self.counted += 1
        if operation == "create" and path.startswith("p="):
            super().called(operation, arguments)

    counted = 0


def side_by_side(world: ServiceWorld, options: dict[str, str]) -> int:
    """Each writer begins when the one before has begun its files; the calls of all of them."""
    hooks: list[OnFirstFile] = []

    def write() -> None:
        number = len(hooks)
        if number == WRITERS:
            return
        hooks.append(OnFirstFile(1, write))
        context = world.context(60 + number, hooks[number].storage(world.storage), **options)
        world.clock.advance(10)
        TableWriter(context).write(operations.upsert(own_rows(number).table()))

    write()
    assert len(hooks) == WRITERS
    return sum(hook.counted for hook in hooks)


def own_rows(number: int) -> Write:
    """One row in each of the file groups of one writer."""
    all_rows = updated(WRITERS * GROUPS_EACH, 2 + number, partitions=MANY).rows
    return Write("upsert", all_rows[number * GROUPS_EACH : (number + 1) * GROUPS_EACH])


MANY = "".join(chr(0x4E00 + number) for number in range(WRITERS * GROUPS_EACH))


def test_of_8_writers_on_disjoint_file_groups_none_gives_way_and_each_calls_as_often() -> None:
    counted = {}
    for name, options in (("off", SEVERAL), ("on", ON)):
        world = new_service_world(COW, inserted(WRITERS * GROUPS_EACH, partitions=MANY))
        counted[name] = side_by_side(world, options)
    assert counted["off"] < counted["on"] <= 1.03 * counted["off"]
