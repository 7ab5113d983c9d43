"""Indexes that are built on rows are those that writes would have kept, whatever happens."""

import os
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.metadata.entries.changes import Located, TableChange
from lakewarden.engine.metadata.reading.column_stats import partition_ranges
from lakewarden.engine.metadata.reading.definitions import load_definitions
from lakewarden.engine.read.merge.slice_reader import BATCH_ROWS
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.services.indexing.base_files import KEYS_HELD_BYTES, SpilledKeys
from lakewarden.engine.services.indexing.present import PresentTable
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.testing.fault_plan import crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.state.context import load_for_writing
from lakewarden.engine.write.outcome import AtCommit
from tests.all_kinds import differences
from tests.crash.dying_operations import ports
from tests.engine.services.indexing.builds_kit import at
from tests.engine.services.indexing.indexed_tables import homes, indexed, state_of
from tests.engine.services.service_table import (
    COW,
    FLAT_MOR,
    MOR,
    ServiceWorld,
    contents,
    inserted,
    new_service_world,
    row,
    updated,
)
from tests.writing.model import Write
from tests.writing.shapes import Shape

IS_SIMULATION = "LAKEWARDEN_KILLS" in os.environ
DELETED = Write("delete", (row("k0"),))
HISTORY = (inserted(), updated(), Write("upsert", (row("n1", 3), row("k2", 3))), DELETED)
BINARY = {
    "id": ["b"],
    "p": ["b"],
    "ts": pa.array([5], pa.int64()),
    "v": [0.5],
    "name": ["b"],
    "raw": pa.array([b"b"], pa.binary()),
}
STATISTICS = ("column_stats", "partition_stats")


def statistics(table: Table) -> object:
    """All that is known of columns, by file and by partition."""
    state = state_of(table)
    columns = ["_hoodie_record_key", "id", "ts", "v", "name"]
    kept = {"column_stats": table.column_statistics()}
    if state.config.has_metadata("partition_stats"):
        statistics = state.metadata.partition("partition_stats")
        kept["partition_stats"] = partition_ranges(statistics, columns, ["p=a", "p=b", "a", "b"])
    return kept


def built(world: ServiceWorld, name: str, **arguments: object) -> Table:
    table = world.table(70)
    table.create_index(name, **arguments)  # type: ignore[arg-type]
    return table


@pytest.mark.parametrize("shape", [COW, MOR, FLAT_MOR], ids=str)
def test_a_record_index_leads_to_every_row_and_writes_keep_it(shape: Shape) -> None:
    world = new_service_world(shape, *HISTORY)
    table = built(world, "record_index", columns=["id"])
    assert indexed(table) == homes(table)
    more = Write("upsert", (row("k3", 9, "b"), row("x1", 9)))
    world.write(more, Write("delete", (row("k4"),)))
    assert indexed(table) == homes(table)
    assert world.rows() == contents(shape, *HISTORY, more, Write("delete", (row("k4"),)))


def test_an_index_for_each_partition_may_have_a_key_in_several() -> None:
    twice = Write("upsert", (row("k1", 4, "a"),))
    world = new_service_world(MOR, *HISTORY, twice)
    with pytest.raises(InvalidRequest, match="'k1' more than once") as refused:
        built(world, "record_index", columns=["id"])
    assert refused.value.code == "repeated_keys"
    table = built(world, "record_index", columns=["id"], options={"isPartitioned": "true"})
    assert indexed(table) == homes(table)
    (index,) = (one for one in table.indexes() if one.partition == "record_index")
    assert index.is_partitioned


def test_an_index_for_each_partition_is_built_where_no_row_is_left() -> None:
    world = new_service_world(MOR, inserted(), Write("delete_partitions", (), ("a", "b")))
    table = built(world, "record_index", columns=["id"], options={"isPartitioned": "true"})
    assert indexed(table) == set()
    assert table.lookup(["k0"]).num_rows == 0
    world.write(updated())
    assert indexed(world.table(71)) == homes(world.table(71))


@pytest.mark.parametrize("shape", [COW, MOR, FLAT_MOR], ids=str)
def test_statistics_are_those_that_writes_have_kept(shape: Shape) -> None:
    world = new_service_world(shape, *HISTORY)
    table = world.table(70)
    kept = statistics(table)
    table.drop_index("column_stats")
    assert not set(STATISTICS) & set(table.config.metadata_partitions)
    table.create_index("column_stats")
    if shape.is_partitioned:
        table.create_index("partition_stats")
    assert statistics(table) == kept
    world.write(updated(6, 8))
    assert world.rows() == world.rows(use_metadata=False)


def test_statistics_of_chosen_columns_are_kept_of_these() -> None:
    world = new_service_world(MOR, *HISTORY)
    table = world.table(70)
    table.drop_index("column_stats")
    table.create_index("column_stats", ["v"])
    assert {one.column for one in table.column_statistics()} == {
        "_hoodie_commit_time",
        "_hoodie_partition_path",
        "_hoodie_record_key",
        "v",
    }


def test_refreshing_builds_the_same_anew() -> None:
    world = new_service_world(MOR, *HISTORY)
    table = built(world, "record_index", columns=["id"], options={"isPartitioned": "true"})
    kept, defined = statistics(table), load_definitions(world.storage, table.config)
    for name in ("record_index", "column_stats"):
        done = table.refresh_index(name)
        assert done.is_changed
    assert (statistics(table), indexed(table)) == (kept, homes(table))
    assert load_definitions(world.storage, table.config) == defined


def test_a_metadata_table_comes_back_as_it_was() -> None:
    world = new_service_world(MOR, *HISTORY)
    table = world.table(70)
    kept, listed = statistics(table), table.metadata_listing().files()
    gone = table.delete_metadata_table()
    assert set(gone) == {"files", *STATISTICS}
    assert not world.storage.walk(".hoodie/metadata")
    assert world.rows() == contents(MOR, *HISTORY)
    world.write(updated(6, 5))
    world.table(71).rollback(table.timeline().instants[-1].requested)
    assert set(table.create_metadata_table()) == {"files", *STATISTICS}
    assert table.metadata_listing().files() == listed
    assert statistics(table) == kept
    assert table.compared_files()
    assert all(file.is_same for file in table.compared_files())


def test_whoever_is_at_work_is_not_disturbed() -> None:
    world = new_service_world(MOR, *HISTORY)
    attempt = publish(world.context(60), Action.DELTA_COMMIT, claims=True).attempt
    assert attempt is not None
    before = world.storage.walk("")
    changes: list[Callable[[Table], object]] = [
        lambda table: table.drop_index("column_stats"),
        lambda table: table.delete_metadata_table(),
    ]
    with attempt:
        for change in changes:
            with pytest.raises(Conflict) as refused:
                change(world.table(70))
            assert refused.value.code == "table_busy"
        assert {one.path for one in world.storage.walk("")} == {one.path for one in before}


def test_a_plan_that_waits_does_no_harm() -> None:
    world = new_service_world(MOR, *HISTORY)
    plan = world.table(60).compaction.schedule()
    table = built(world, "record_index", columns=["id"])
    assert indexed(table) == homes(table)
    plan.run()  # type: ignore[union-attr]
    assert indexed(table) == homes(table)
    assert world.rows() == contents(MOR, *HISTORY)


@pytest.mark.parametrize("operation", ["schedule", "scheduleAndExecute"])
def test_what_no_write_could_maintain_is_refused_before_a_plan_says_so(operation: str) -> None:
    world = new_service_world(COW, *HISTORY)
    table = built(world, "record_index", columns=["id"])
    table.upsert(pa.table(BINARY), evolve=True)
    with pytest.raises(InvalidRequest) as refused:
        table.build_index("by_raw", ["raw"], "secondary_index", op=operation)
    assert refused.value.code == "unsupported_index"
    assert "cannot be created" in str(refused.value)
    assert table.upsert([row("k0", 9) | {"raw": None}]).rows_written


def test_an_index_of_keys_names_fields_inside_a_column_as_the_key_does() -> None:
    clock = ManualClock()
    schema = pa.schema([("k", pa.struct([("a", pa.string())])), ("v", pa.int64())])
    storage = fresh_memory_storage(clock=clock)
    table = Table.create("", schema, ["k.a"], storage=storage, ports=ports(clock, 1))
    table.upsert([{"k": {"a": "one"}, "v": 1}])
    table.create_index("record_index", ["k.a"])
    assert table.lookup(["one"], ["v"]).to_pylist() == [{"v": 1}]
    with pytest.raises(InvalidRequest, match=r"no column 'k\.a'"):
        table.create_index("by_length", ["k.a"], "column_stats", {"expr": "length"})


def test_a_write_that_began_without_the_index_begins_anew() -> None:
    world = new_service_world(MOR, *HISTORY)
    table = world.table(60)
    known = table.indexes()
    schema = state_of(table).schema()
    at_commit = AtCommit(world.storage, schema, schema, (), {}, known)
    change = TableChange(instant="1")
    assert at_commit(change, load_for_writing(world.context(61))).instant == "1"
    built(world, "record_index", columns=["id"])
    with pytest.raises(Conflict, match="'record_index'") as refused:
        at_commit(change, load_for_writing(world.context(61)))
    assert refused.value.code == "write_conflict"


@pytest.mark.parametrize("name", ["record_index", "column_stats"])
def test_a_crash_at_any_call_leaves_a_true_table_and_building_goes_on(name: str) -> None:
    """Of the many calls those that write, or every seventh of them."""
    start = new_service_world(MOR, *HISTORY)
    start.table(70).drop_index("column_stats")
    rehearsal = start.copy()
    recording = FaultyStorage(rehearsal.storage)
    rehearsal.table(71, recording).create_index(name)
    writing = [call for call in recording.calls if call.operation in ("put", "create_exclusive")]
    for plan in list(crash_plans(writing))[:: 1 if IS_SIMULATION else 7]:
        world = start.copy()
        with suppress(Crashed):
            world.table(71, FaultyStorage(world.storage, plan)).create_index(name)
        world.clock.advance(3_600_000)
        assert world.rows() == contents(MOR, *HISTORY), plan
        table = world.table(72)
        table.create_index(name, if_not_exists=True)
        world.write(updated(6, 7))
        assert world.rows() == world.rows(use_metadata=False), plan
        if name == "record_index":
            assert indexed(table) == homes(table), plan


def test_keys_beyond_the_limit_wait_in_a_file() -> None:
    places = [FileGroupId("a", f"f{number}") for number in range(20)]
    with BytesIO() as file:
        kept = SpilledKeys(100, file)
        for home in places:
            key = f"a key of {home.file_id}"
            kept.add({0: _located(home, key, "\u00dc"), 1: _located(home, key)})
            assert kept.held_bytes <= 100
        for group, keys_each in ((0, 2), (1, 1)):
            taken = kept.taken(group)
            assert [one.home for one in taken] == places
            assert [one.instant for one in taken] == [home.file_id for home in places]
            assert [one.keys[0].as_py() for one in taken] == [
                f"a key of {home.file_id}" for home in places
            ]
            assert {len(one.keys) for one in taken} == {keys_each}
        assert kept.held_bytes == 0
        assert kept.taken(0) == []


def _located(home: FileGroupId, *keys: str) -> Located:
    return Located(pa.array(keys), home, home.file_id)


@pytest.mark.parametrize("shape", [COW, MOR, FLAT_MOR], ids=str)
@pytest.mark.parametrize("held_bytes", [0, 40, 1 << 20])
def test_an_index_is_true_however_few_keys_are_held(shape: Shape, held_bytes: int) -> None:
    nulled = Write("upsert", (row("k1", 5, "b", None) | {"name": None}, row("k5", 5, "b", "a$\\")))
    world = new_service_world(shape, *HISTORY, nulled)
    update_properties(world.storage, {KEYS_HELD_BYTES.key: str(held_bytes)})
    table = built(world, "record_index", columns=["id"])
    table.create_index("by_name", ["name"])
    table.create_index("by_v", ["v"])
    assert indexed(table) == homes(table)
    assert differences(table) == []
    assert {"secondary_index_by_name", "secondary_index_by_v"} <= set(
        table.config.metadata_partitions
    )


def test_a_build_holds_one_file_group_and_as_many_keys_as_it_may() -> None:
    count, held_bytes = 60_000, 100_000
    clock = ManualClock()
    world = ServiceWorld(clock, fresh_memory_storage(clock=clock))
    schema = pa.schema([("id", pa.string()), ("name", pa.string())])
    properties = {KEYS_HELD_BYTES.key: str(held_bytes)}
    table = Table.create(
        "", schema, key=["id"], storage=world.storage, ports=ports(clock, 1), properties=properties
    )
    keys = [f"a key of forty characters, of which {n:04}" for n in range(count)]
    table.bulk_insert(pa.table({"id": keys, "name": [f"name {n}" for n in range(count)]}))
    table.create_index("record_index", ["id"])
    before, seen = pa.total_allocated_bytes(), []
    watched = at(
        world,
        r"/secondary_index_by_name/.*\.hfile$",
        lambda: seen.append(pa.total_allocated_bytes() - before),
    )
    world.table(70, watched).create_index("by_name", ["name"])
    in_all = sum(len(key) + len("name 00000$") for key in keys)
    # The keys of one of ten groups: as they are taken, in order, as cells and as an HFile.
    assert 0 < seen[0] < held_bytes + 6 * in_all / 10 < in_all


def test_keys_of_a_large_file_are_read_in_parts() -> None:
    count = BATCH_ROWS + 5_000
    world = ServiceWorld(ManualClock(), fresh_memory_storage())
    schema = pa.schema([("id", pa.string())])
    table = Table.create("", schema, key=["id"], storage=world.storage, ports=ports(world.clock, 1))
    keys = [f"{number:06}" for number in range(count)]
    table.bulk_insert(pa.table({"id": keys}))
    present = PresentTable(world.snapshot(), LocalExecutor(1))
    (slice_,) = present.slices()
    parts = [one.keys for one in present.key_reader.parts(slice_)]
    assert max(map(len, parts)) <= BATCH_ROWS
    assert pa.concat_arrays(parts).to_pylist() == keys
