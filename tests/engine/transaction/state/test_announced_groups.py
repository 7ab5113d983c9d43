"""Announced file groups: what writes under way touch, by inflight files and markers of both types.

The tables in `golden/markers` were frozen while Java was writing: the markers, the inflight files
and the heartbeats are Java's own.
"""

from pathlib import Path

import pytest

from lakewarden import Table
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, Operation, WriteStat
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.table.config import load_config
from lakewarden.engine.testing.fault_plan import FaultPlan
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.instants.instant import Instant
from lakewarden.engine.timeline.timeline import Timeline
from lakewarden.engine.transaction.state.markers import (
    AnnouncementReader,
    announced_groups,
    marker_folder,
    read_announcements,
)
from tests.engine.transaction.transaction_table import TransactionTable
from tests.golden_tables import GOLDEN_FOLDER, GoldenTable

FROZEN = sorted(path.stem for path in (GOLDEN_FOLDER / "markers").glob("*.zip"))
TWO_WRITERS = [name for name in FROZEN if name.endswith("two_writers")]
SEVERAL = [name for name in FROZEN if name.endswith("several_batches")]
OF_VERSION_9 = [name for name in FROZEN if not name.endswith("version6")]
JAVA = "20231114221319000"
DIRECT_NAME = "p=a/g1_0-1-2_{}.parquet.marker.MERGE"


def seen(storage: Storage) -> tuple[Snapshot, list[Instant]]:
    config = load_config(storage)
    timeline = Timeline.load(storage, config.layout)
    return Snapshot(storage, config, timeline), list(timeline.active.pending())


def partitions_touched(path: Path) -> list[list[str]]:
    storage = open_storage(Location(str(path)))
    snapshot, pending = seen(storage)
    found = (announced_groups(storage, snapshot, one).touched.keys for one in pending)
    return [sorted(key.partition for key in keys) for keys in found]


@pytest.mark.parametrize("name", TWO_WRITERS)
def test_of_two_writers_each_touches_its_own_group_and_the_common_one(
    name: str, golden_copy: GoldenTable
) -> None:
    assert partitions_touched(golden_copy(f"markers/{name}")) == [["p1", "p2"], ["a_b/c", "p2"]]


@pytest.mark.parametrize("name", SEVERAL)
def test_new_groups_are_known_by_their_markers_and_old_ones_by_the_inflight_file(
    name: str, golden_copy: GoldenTable
) -> None:
    days = [f"day_{n}/h=0{n}" for n in range(1, 7)]
    path = golden_copy(f"markers/{name}")
    assert partitions_touched(path) == [[*days, "new_1"]]
    storage = open_storage(Location(str(path)))
    snapshot, (instant,) = seen(storage)
    storage.delete_folder(marker_folder(instant.requested))
    known = announced_groups(storage, snapshot, instant).touched.keys
    assert sorted(key.partition for key in known) == days


@pytest.mark.parametrize("name", FROZEN)
def test_markers_tell_the_same_whichever_way_they_are_read(
    name: str, golden_copy: GoldenTable
) -> None:
    storage = open_storage(Location(str(golden_copy(f"markers/{name}"))))
    snapshot, pending = seen(storage)
    for instant in pending:
        marked = read_announcements(storage, instant.requested)
        types = {one.type.value for one in marked}
        assert types == {"TIMELINE_SERVER_BASED" if "_server_" in name else "DIRECT"}
        partitions = {one.file.partition for one in marked}
        everything = announced_groups(storage, snapshot, instant)
        some = announced_groups(storage, snapshot, instant, partitions)
        assert some.touched == everything.touched
        assert {key.partition for key in everything.touched.keys} >= partitions
        logs = {one.file.partition for one in marked if one.file.name.startswith(".")}
        assert {key.partition for key in everything.touched.appended} == logs


@pytest.mark.parametrize("name", OF_VERSION_9)
def test_what_java_left_dead_goes_with_its_markers(name: str, golden_copy: GoldenTable) -> None:
    path = golden_copy(f"markers/{name}")
    table = Table(str(path))
    before = table.read_arrow()
    dead = [instant.requested for instant in table.timeline().pending()]
    lazy = {"hoodie.clean.failed.writes.policy": "LAZY"}
    assert [one.instant for one in table.rollback_failed_writes(lazy)] == dead
    left = [file for file in path.rglob("*") if any(one in file.name for one in dead)]
    assert not [file for file in left if file.suffix == ".parquet" or ".log." in file.name]
    assert not [*(path / ".hoodie/.temp").glob("*/*")]
    assert table.read_arrow().equals(before)


def java_write(
    storage: Storage, operation: Operation, *stats: WriteStat, action: str = "replacecommit"
) -> None:
    told = CommitMetadata(
        partition_to_write_stats={"p=a": stats} if stats else {}, operation_type=operation
    )
    storage.put(f".hoodie/timeline/{JAVA}.{action}.requested", b"")
    storage.put(f".hoodie/timeline/{JAVA}.{action}.inflight", commit.encode(told))


def test_an_overwrite_by_java_touches_all_groups_of_its_partitions() -> None:
    world = TransactionTable()
    java_write(world.storage, Operation.INSERT_OVERWRITE, WriteStat(file_id="", num_inserts=3))
    snapshot, (instant,) = seen(world.storage)
    announced = announced_groups(world.storage, snapshot, instant)
    groups = [FileGroupId("p=a", "f1"), FileGroupId("p=a/q=1", "f1"), FileGroupId("p=b", "f1")]
    assert announced.touched.keys == frozenset()
    assert announced.among(groups) == {groups[0]}
    assert announced.with_those_among(groups).keys == {groups[0]}


def test_an_overwrite_of_the_table_by_java_touches_every_group() -> None:
    world = TransactionTable()
    java_write(world.storage, Operation.INSERT_OVERWRITE_TABLE, WriteStat(file_id=""))
    snapshot, (instant,) = seen(world.storage)
    groups = {FileGroupId("p=a", "f1"), FileGroupId("p=b", "f1")}
    assert announced_groups(world.storage, snapshot, instant).among(groups) == groups


def test_rows_that_java_inserts_name_no_group() -> None:
    world = TransactionTable()
    java_write(world.storage, Operation.UPSERT, WriteStat(file_id=""), action="deltacommit")
    snapshot, (instant,) = seen(world.storage)
    groups = {FileGroupId("p=a", "f1")}
    assert not announced_groups(world.storage, snapshot, instant).among(groups)


@pytest.mark.parametrize("payload", [b"p=a/f1_0-1-2_3.parqu", b"no marker\n\xff\n", b""])
def test_a_list_that_cannot_be_read_says_nothing(payload: bytes) -> None:
    world = TransactionTable()
    java_write(world.storage, Operation.UPSERT)
    world.storage.put(f"{marker_folder(JAVA)}/MARKERS0", payload)
    snapshot, (instant,) = seen(world.storage)
    assert announced_groups(world.storage, snapshot, instant).touched.keys == frozenset()


def test_a_look_reads_again_only_what_has_changed() -> None:
    world = TransactionTable()
    java_write(world.storage, Operation.UPSERT, WriteStat(file_id="f1"))
    places = marker_folder(JAVA)
    world.storage.put(f"{places}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    world.storage.put(f"{places}/MARKERS0", b"p=a/g0_0-1-2_3.parquet.marker.MERGE\n")
    world.storage.put(f"{places}/{DIRECT_NAME.format(JAVA)}", b"")
    snapshot, (instant,) = seen(world.storage)
    storage = FaultyStorage(world.storage, FaultPlan(), world.clock)
    reader = AnnouncementReader(storage)

    def looked() -> tuple[list[str], list[str]]:
        before = len(storage.calls)
        keys = reader.read(snapshot, instant, ["p=a"]).touched.keys
        calls = [call.operation for call in storage.calls[before:] if call.operation != "read"]
        return sorted(key.file_id for key in keys), calls

    assert looked() == (["f1", "g0", "g1"], ["list", "list", "read_if_present"])
    assert looked() == (["f1", "g0", "g1"], ["list", "list"])
    world.storage.put(f"{places}/MARKERS7", b"p=a/g7_0-1-2_3.parquet.marker.MERGE\n")
    assert looked() == (["f1", "g0", "g1", "g7"], ["list", "list", "read_if_present"])


def test_a_table_of_fifty_thousand_markers_is_read_by_lines() -> None:
    lines = (f"p={n % 100}/f{n}_{n}-1-2_{JAVA}.parquet.marker.MERGE\n" for n in range(50_000))
    storage = fresh_memory_storage()
    world = TransactionTable()
    java_write(world.storage, Operation.UPSERT)
    snapshot, (instant,) = seen(world.storage)
    storage.put(f"{marker_folder(JAVA)}/MARKERS0", "".join(lines).encode())
    assert len(announced_groups(storage, snapshot, instant).touched.keys) == 50_000
