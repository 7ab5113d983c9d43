"""Writing to the metadata table: what is told is read back, once, however often it is told."""

from contextlib import suppress

import pyarrow as pa
import pytest

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.building.create import BuildOptions
from lakewarden.engine.metadata.entries.changes import Located, Removed, TableChange
from lakewarden.engine.metadata.reading.column_stats import column_ranges, partition_ranges
from lakewarden.engine.metadata.reading.files import MetadataListing
from lakewarden.engine.metadata.reading.record_index import all_locations, locate
from lakewarden.engine.metadata.writing.writer import refuse_unmaintained
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.testing.fault_plan import crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from tests.engine.metadata.table_in_memory import TableInMemory, new_file

GROUP = "3e93c8a9-fda0-4e8a-91dc-b4ade7dab76d-0"
OTHER = "ca5f17ae-c0bc-46c1-a988-6192740d2aa4-0"


def base(instant: str, group: str = GROUP) -> str:
    return f"{group}_0-0-0_{instant}.parquet"


def located(partition: str, group: str, *keys: str) -> Located:
    return Located(pa.array(keys, pa.string()), FileGroupId(partition, group))


def removed(partition: str, *keys: str) -> Removed:
    return Removed(pa.array(keys, pa.string()), partition)


def listed(table: TableInMemory) -> dict[str, list[tuple[str, int]]]:
    found = MetadataListing(table.metadata.partition("files")).files()
    return {
        partition: [(file.name, file.size_bytes) for file in files]
        for partition, files in found.items()
    }


def places(table: TableInMemory) -> dict[str, FileGroupId]:
    return {one.key: one.file_group_id for one in all_locations(table.metadata.record_index())}


def test_a_new_metadata_table_lists_nothing() -> None:
    table = TableInMemory().create()
    assert listed(table) == {}
    assert places(table) == {}


def test_new_files_are_listed_with_their_sizes() -> None:
    table = TableInMemory().create()
    name = base("1")
    table.write(new_file("p=a", name, ["1", "2"], [1.0, 2.0]))
    assert listed(table) == {"p=a": [(name, 102)]}


def test_the_files_of_a_table_without_partitions_are_listed() -> None:
    table = TableInMemory().create(("files",), is_partitioned=False)
    name = base("1")
    table.write(new_file("", name, ["1"], [1.0]))
    assert listed(table) == {"": [(name, 101)]}


def test_a_pending_write_is_not_seen() -> None:
    table = TableInMemory().create()
    instant = table.begin()
    table.tell(TableChange(instant=instant, new_files=(new_file("a", base("1"), ["1"], [1.0]),)))
    assert listed(table) == {}


def test_removed_files_are_not_listed_and_have_no_statistics() -> None:
    table = TableInMemory().create()
    old, new = base("1"), base("2")
    table.write(new_file("a", old, ["1"], [1.0]))
    table.write(new_file("a", new, ["1"], [2.0]))
    table.write(deleted_files={"a": (old,)})
    assert listed(table) == {"a": [(new, 101)]}
    ranges = column_ranges(table.metadata.partition("column_stats"), ["v"], ["a"])
    assert ranges["a"].keys() == {new}


def test_a_removed_partition_is_not_listed() -> None:
    table = TableInMemory().create()
    table.write(new_file("a", base("1"), ["1"], [1.0]), new_file("b", base("1"), ["2"], [1.0]))
    table.write(deleted_files={"a": (base("1"),)}, deleted_partitions=("a",))
    assert listed(table).keys() == {"b"}


def test_statistics_of_a_file_are_read_back() -> None:
    table = TableInMemory().create()
    table.write(new_file("a", base("1"), ["k", "b", "x"], [3.0, None, -1.5]))
    ranges = column_ranges(table.metadata.partition("column_stats"), ["v", "id"], ["a"])
    found = ranges["a"][base("1")]
    assert (found["v"].minimum.as_py(), found["v"].maximum.as_py()) == (-1.5, 3.0)
    assert (found["v"].null_count, found["v"].value_count) == (1, 3)
    assert (found["id"].minimum.as_py(), found["id"].maximum.as_py()) == ("b", "x")


def test_partition_statistics_take_in_the_live_files_of_earlier_writes() -> None:
    table = TableInMemory().create()
    first, second, third = base("1"), base("2", OTHER), base("3")
    table.write(new_file("a", first, ["1"], [-9.0]), live_files={"a": (first,)})
    table.write(new_file("a", second, ["2"], [5.0]), live_files={"a": (first, second)})
    table.write(new_file("a", third, ["1"], [7.0]), live_files={"a": (second, third)})
    ranges = partition_ranges(table.metadata.partition("partition_stats"), ["v"], ["a"])
    assert ranges["a"]["v"].minimum.as_py() == 5.0
    assert ranges["a"]["v"].maximum.as_py() == 7.0
    assert ranges["a"]["v"].value_count == 2


def test_a_partition_without_files_has_no_statistics() -> None:
    table = TableInMemory().create()
    table.write(new_file("a", base("1"), ["1"], [1.0]), live_files={"a": (base("1"),)})
    table.write(live_files={"a": ()})
    assert partition_ranges(table.metadata.partition("partition_stats"), ["v"], ["a"]) == {}


def test_a_column_that_an_older_file_lacks_counts_as_null_there() -> None:
    table = TableInMemory().create()
    older = new_file("a", base("1"), ["1", "2"], [1.0, 2.0])
    kept = {name: one for name, one in older.columns.items() if name != "v"}
    older = type(older)(older.partition, older.name, older.size_bytes, kept)
    table.write(older, live_files={"a": (older.name,)})
    newer = new_file("a", base("2", OTHER), ["3"], [5.0])
    table.write(newer, live_files={"a": (older.name, newer.name)})
    ranges = partition_ranges(table.metadata.partition("partition_stats"), ["v"], ["a"])
    assert (ranges["a"]["v"].null_count, ranges["a"]["v"].value_count) == (2, 3)
    assert ranges["a"]["v"].minimum.as_py() == 5.0


def test_record_keys_lead_to_their_file_groups() -> None:
    table = TableInMemory().create()
    table.write(located=(located("a", GROUP, "1", "2"), located("b", "bucket_00000001", "3")))
    assert places(table) == {
        "1": FileGroupId("a", GROUP),
        "2": FileGroupId("a", GROUP),
        "3": FileGroupId("b", "bucket_00000001"),
    }


def test_removed_keys_are_not_found() -> None:
    table = TableInMemory().create()
    table.write(located=(located("a", GROUP, "1", "2"),))
    table.write(removed=(removed("a", "1"),))
    assert places(table).keys() == {"2"}


def test_a_key_that_moves_between_partitions_keeps_its_new_place() -> None:
    table = TableInMemory().create()
    table.write(located=(located("a", GROUP, "1"),))
    table.write(located=(located("b", OTHER, "1"),), removed=(removed("a", "1"),))
    assert places(table) == {"1": FileGroupId("b", OTHER)}


def test_of_a_repeated_key_the_last_place_counts() -> None:
    table = TableInMemory().create()
    table.write(located=(located("a", GROUP, "1", "1"), located("b", OTHER, "1")))
    assert places(table) == {"1": FileGroupId("b", OTHER)}


def test_a_partitioned_index_knows_a_key_in_each_partition() -> None:
    choices = BuildOptions(is_record_index_partitioned=True)
    table = TableInMemory().create(choices=choices)
    table.write(located=(located("x/y", GROUP, "1"), located("b_c", OTHER, "1")))
    table.write(removed=(removed("x/y", "1"),), located=(located("x/y", GROUP, "2"),))
    found = locate(table.metadata.record_index(), ["1", "2"])
    assert {(one.key, one.file_group_id.partition) for one in found} == {("1", "b_c"), ("2", "x/y")}


def test_the_shard_of_a_partition_is_named_as_java_names_it() -> None:
    table = TableInMemory().create(choices=BuildOptions(is_record_index_partitioned=True))
    table.write(located=(located("ü-0000-0", GROUP, "1"), located("b_c d/x", OTHER, "1")))
    names = {entry.name for entry in table.storage.list(".hoodie/metadata/record_index").files}
    assert any(name.startswith(".record-index-ü%2D0000%2D0-0000-0_") for name in names)
    assert any(name.startswith(".record-index-b%5Fc d%2Fx-0000-0_") for name in names)


def test_telling_the_same_instant_again_replaces_what_was_told() -> None:
    table = TableInMemory().create(choices=BuildOptions(is_record_index_partitioned=True))
    instant = table.begin()
    first = new_file("a", base("1"), ["1"], [1.0])
    table.tell(
        TableChange(instant=instant, new_files=(first,), located=(located("a", GROUP, "1"),))
    )
    second = new_file("b", base("1", OTHER), ["2"], [1.0])
    table.tell(
        TableChange(instant=instant, new_files=(second,), located=(located("b", OTHER, "2"),))
    )
    table.complete(instant)
    assert listed(table) == {"b": [(second.name, 101)]}
    assert places(table) == {"2": FileGroupId("b", OTHER)}


def test_a_rolled_back_write_leaves_nothing() -> None:
    table = TableInMemory().create()
    table.write(located=(located("a", GROUP, "1"),))
    instant = table.begin()
    file = new_file("b", base("1"), ["2"], [1.0])
    table.tell(TableChange(instant=instant, new_files=(file,), located=(located("b", GROUP, "2"),)))
    table.roll_back(instant, table.times.next())
    table.complete(instant)
    assert listed(table) == {}
    assert places(table) == {"1": FileGroupId("a", GROUP)}


def test_rolling_back_again_changes_nothing() -> None:
    table = TableInMemory().create()
    instant = table.begin()
    table.tell(TableChange(instant=instant, new_files=(new_file("b", base("1"), ["2"], [1.0]),)))
    rollback_instant = table.times.next()
    table.roll_back(instant, rollback_instant)
    before = [entry.path for entry in table.storage.walk("")]
    table.roll_back(instant, rollback_instant)
    assert [entry.path for entry in table.storage.walk("")] == before


def test_a_write_that_never_reached_the_metadata_table_needs_no_rollback_there() -> None:
    table = TableInMemory().create()
    instant = table.begin()
    before = [entry.path for entry in table.storage.walk("")]
    table.roll_back(instant, table.times.next())
    assert [entry.path for entry in table.storage.walk("")] == before


def test_a_table_with_an_unknown_index_is_refused() -> None:
    table, partition = TableInMemory().create(), "vector_index_by_city"
    update_properties(
        table.storage, {"hoodie.table.metadata.partitions": f"column_stats,files,{partition}"}
    )
    with pytest.raises(InvalidRequest, match="drop_index") as refused:
        refuse_unmaintained(table.storage, table.config)
    assert refused.value.code == "unsupported_index"
    assert refused.value.partition == partition


def test_a_column_that_is_new_to_the_statistics_is_defined() -> None:
    table = TableInMemory().create()
    file = new_file("a", base("1"), ["1"], [1.0])
    table.write(type(file)(file.partition, file.name, 5, {**file.columns, "w": file.columns["v"]}))
    ranges = column_ranges(table.metadata.partition("column_stats"), ["w"], ["a"])
    assert ranges["a"][file.name]["w"].maximum.as_py() == 1.0
    assert b'"w"' in table.storage.read(".hoodie/.index_defs/index.json")


def test_a_crash_at_any_call_is_made_good_by_telling_it_again() -> None:
    file = new_file("b", base("1", OTHER), ["2"], [1.0])

    def change(instant: str) -> TableChange:
        return TableChange(
            instant=instant,
            new_files=(file,),
            located=(located("b", OTHER, "2"),),
            live_files={"b": (file.name,)},
        )

    def prepared() -> tuple[TableInMemory, str]:
        table = TableInMemory().create(choices=BuildOptions(is_record_index_partitioned=True))
        table.write(located=(located("a", GROUP, "1"),))
        return table, table.begin()

    table, instant = prepared()
    rehearsal = FaultyStorage(table.storage)
    TableInMemory(rehearsal, table.clock).tell(change(instant))
    for plan in crash_plans(rehearsal.calls):
        table, instant = prepared()
        with suppress(Crashed):
            TableInMemory(FaultyStorage(table.storage, plan), table.clock).tell(change(instant))
        assert listed(table) == {}, plan
        table.tell(change(instant))
        table.complete(instant)
        assert listed(table) == {"b": [(file.name, 101)]}, plan
        assert places(table).keys() == {"1", "2"}, plan


def test_a_crash_at_any_call_of_a_rollback_is_made_good_by_another() -> None:
    file = new_file("b", base("1", OTHER), ["2"], [1.0])

    def prepared() -> tuple[TableInMemory, str, str]:
        table = TableInMemory().create(choices=BuildOptions(is_record_index_partitioned=True))
        instant = table.begin()
        keys = located("b", OTHER, "2")
        table.tell(TableChange(instant=instant, new_files=(file,), located=(keys,)))
        return table, instant, table.times.next()

    table, instant, rollback_instant = prepared()
    rehearsal = FaultyStorage(table.storage)
    TableInMemory(rehearsal, table.clock).roll_back(instant, rollback_instant)
    for plan in crash_plans(rehearsal.calls):
        table, instant, rollback_instant = prepared()
        with suppress(Crashed):
            broken = TableInMemory(FaultyStorage(table.storage, plan), table.clock)
            broken.roll_back(instant, rollback_instant)
        assert listed(table) == {}, plan
        table.roll_back(instant, rollback_instant)
        left = [entry.path for entry in table.storage.walk(".hoodie/metadata")]
        assert not [path for path in left if f"_{instant}." in path or f"/{instant}." in path], plan
        assert any(f"/{rollback_instant}_" in path for path in left), plan
