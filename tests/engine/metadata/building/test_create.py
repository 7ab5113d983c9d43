"""Creating metadata tables: what Java would have made, and safe to begin anew."""

from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa
import pytest

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.formats.properties import parse_properties, verify_checksum
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.metadata.building.create import BuildOptions, add_partitions
from lakewarden.engine.metadata.entries.changes import Located, TableChange
from lakewarden.engine.metadata.reading.column_stats import column_ranges, partition_ranges
from lakewarden.engine.metadata.reading.definitions import load_definitions
from lakewarden.engine.metadata.reading.files import MetadataListing
from lakewarden.engine.metadata.reading.record_index import all_locations
from lakewarden.engine.metadata.reading.shards import GroupCounts
from lakewarden.engine.metadata.reading.table import load_metadata_table
from lakewarden.engine.table.config import METADATA_FOLDER, PROPERTIES_PATH
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.testing.fault_plan import crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from tests.engine.metadata.table_in_memory import ALL, COLUMNS, TableInMemory, new_file
from tests.golden_tables import GoldenTable

GROUP = "3e93c8a9-fda0-4e8a-91dc-b4ade7dab76d-0"


def names(table: TableInMemory, partition: str) -> list[str]:
    files = table.storage.list(f"{METADATA_FOLDER}/{partition}").files
    return [entry.name for entry in files]


def test_the_properties_are_those_that_java_writes(golden: GoldenTable) -> None:
    table = TableInMemory().create()
    made = parse_properties(table.storage.read(f"{METADATA_FOLDER}/{PROPERTIES_PATH}"), "ours")
    verify_checksum(made, "ours")
    java_file = golden("mor_record_index_global") / METADATA_FOLDER / PROPERTIES_PATH
    java = parse_properties(java_file.read_bytes(), "java")
    own = {"hoodie.table.name", "hoodie.table.checksum"}
    assert {key: made[key] for key in made.keys() - own} == {
        key: java[key] for key in java.keys() - own
    }
    assert made["hoodie.table.name"] == "orders_metadata"


def test_the_table_lists_the_partitions_and_where_they_are_defined() -> None:
    config = TableInMemory().create().config
    assert config.metadata_partitions == (
        "column_stats",
        "files",
        "partition_stats",
        "record_index",
    )
    assert config.index_definitions_path == ".hoodie/.index_defs/index.json"


def test_partitions_are_initialised_in_the_order_of_java() -> None:
    table = TableInMemory().create()
    state = load_metadata_table(table.storage, table.config)
    active = state.timeline.active
    assert [one.requested for one in active.completed()] == [f"{at:017d}" for at in range(4)]
    assert names(table, "files")[0] == ".files-0000-0_00000000000000000.log.1_0-0-0"
    assert names(table, "column_stats")[0] == ".col-stats-0000-0_00000000000000001.log.1_0-0-0"
    assert names(table, "record_index")[-1] == ".record-index-0009-0_00000000000000002.log.1_0-0-0"
    first = active.completed()[0]
    metadata = commit.decode(active.read(first), "commit")
    assert metadata.operation_type == "BULK_INSERT_PREPPED"
    (stat,) = metadata.partition_to_write_stats["files"]
    assert stat.num_inserts == 1


def test_an_initial_log_is_the_one_of_java(golden: GoldenTable) -> None:
    table = TableInMemory().create()
    name = ".files-0000-0_00000000000000000.log.1_0-0-0"
    java = golden("mor_record_index_global") / METADATA_FOLDER / "files" / name
    assert table.storage.read(f"{METADATA_FOLDER}/files/{name}") == java.read_bytes()


def test_a_partitioned_index_has_no_groups_before_there_are_partitions() -> None:
    table = TableInMemory().create(choices=BuildOptions(is_record_index_partitioned=True))
    assert names(table, "record_index") == [".hoodie_partition_metadata"]
    (index,) = (
        one
        for one in load_definitions(table.storage, table.config)
        if one.partition == "record_index"
    )
    assert index.is_partitioned


def test_the_columns_of_the_statistics_are_defined() -> None:
    table = TableInMemory().create()
    definitions = {one.partition: one for one in load_definitions(table.storage, table.config)}
    assert definitions["column_stats"].columns == COLUMNS
    assert definitions["column_stats"].version == "V2"


def test_group_counts_follow_hudis_settings() -> None:
    settings = Settings.of(
        arguments={
            "hoodie.metadata.record.index.min.filegroup.count": 3,
            "hoodie.metadata.index.column.stats.file.group.count": 5,
        }
    )
    table = TableInMemory().create(choices=BuildOptions(settings=settings))
    assert len(names(table, "record_index")) == 1 + 3
    assert len(names(table, "column_stats")) == 1 + 5


def test_columns_follow_hudis_settings() -> None:
    settings = Settings.of(arguments={"hoodie.metadata.index.column.stats.column.list": "v, id"})
    table = TableInMemory().create(choices=BuildOptions(settings=settings))
    definitions = {one.partition: one for one in load_definitions(table.storage, table.config)}
    assert definitions["column_stats"].columns == (*COLUMNS[:3], "v", "id")


def test_a_column_that_is_not_there_is_refused() -> None:
    settings = Settings.of(arguments={"hoodie.metadata.index.column.stats.column.list": "x"})
    table = TableInMemory()
    with pytest.raises(InvalidRequest) as refused:
        table.create(choices=BuildOptions(settings=settings))
    assert refused.value.code == "unsupported_statistics_column"
    assert table.storage.walk(METADATA_FOLDER) == ()


def test_a_record_index_makes_room_for_growth() -> None:
    group_bytes = {"hoodie.metadata.record.index.max.filegroup.size": 48_000}
    counts = GroupCounts(Settings.of(arguments=group_bytes))
    assert counts.of_partition("record_index", 1_000) == 10
    assert counts.of_partition("record_index", 100_000) == 200
    assert counts.of_partition("record_index", 10**9) == 10_000
    assert counts.of_record_shard(1_000) == 2
    assert counts.of_record_shard(10**9) == 10


@pytest.mark.parametrize(
    ("partitions", "is_partitioned", "choices"),
    [
        (("partition_stats",), True, None),
        (("column_stats", "partition_stats"), False, None),
        (("record_index",), False, BuildOptions(is_record_index_partitioned=True)),
        (("secondary_index_x",), True, None),
    ],
)
def test_what_cannot_be_made_is_refused_before_anything_is(
    partitions: tuple[str, ...], is_partitioned: bool, choices: BuildOptions | None
) -> None:
    table = TableInMemory()
    with pytest.raises(InvalidRequest):
        table.create(partitions, is_partitioned=is_partitioned, choices=choices)
    assert table.storage.walk(METADATA_FOLDER) == ()


def test_a_table_that_has_one_is_refused() -> None:
    table = TableInMemory().create()
    with pytest.raises(InvalidRequest) as refused:
        table.create_metadata(ALL)
    assert refused.value.code == "metadata_table_exists"


def test_a_crash_at_any_call_leaves_none_and_creating_begins_anew() -> None:
    def prepared() -> TableInMemory:
        table = TableInMemory().create()
        update_properties(table.storage, {"hoodie.table.metadata.partitions": None})
        table.storage.delete_folder(METADATA_FOLDER)
        return table

    table = prepared()
    rehearsal = FaultyStorage(table.storage)
    TableInMemory(rehearsal, table.clock).create_metadata(ALL)
    for plan in list(crash_plans(rehearsal.calls))[::11]:
        table = prepared()
        with suppress(Crashed):
            TableInMemory(FaultyStorage(table.storage, plan), table.clock).create_metadata(ALL)
        if not table.config.metadata_partitions:
            table.create_metadata(ALL)
        assert MetadataListing(table.metadata.partition("files")).files() == {}, plan
        assert all_locations(table.metadata.record_index()) == (), plan


def with_data() -> tuple[TableInMemory, TableChange, list[Located]]:
    """A table that has just `files`, and what it has."""
    table = TableInMemory().create(("files",))
    files = (
        new_file("a", f"{GROUP}_0-0-0_1.parquet", ["1", "2"], [1.0, 2.0]),
        new_file("b", f"{GROUP}_0-0-0_2.parquet", ["3"], [3.0]),
    )
    instant = table.write(*files)
    live = {file.partition: (file.name,) for file in files}
    located = [
        Located(pa.array(["1", "2"]), FileGroupId("a", GROUP)),
        Located(pa.array(["3"]), FileGroupId("b", GROUP)),
    ]
    return table, TableChange(instant=instant, new_files=files, live_files=live), located


def add(
    table: TableInMemory,
    present: TableChange,
    located: list[Located],
    choices: BuildOptions | None = None,
    partitions: Sequence[str] = ALL,
) -> None:
    add_partitions(
        table.storage,
        table.config,
        partitions,
        present,
        table.times,
        table.ports,
        located=iter(located),
        choices=choices,
    )


@pytest.mark.parametrize("is_partitioned", [False, True])
def test_partitions_are_added_to_a_table_with_data(is_partitioned: bool) -> None:
    table, present, located = with_data()
    add(table, present, located, BuildOptions(is_record_index_partitioned=is_partitioned))
    assert set(table.config.metadata_partitions) == set(ALL)
    metadata = table.metadata
    found = {one.key: one.file_group_id.partition for one in all_locations(metadata.record_index())}
    assert found == {"1": "a", "2": "a", "3": "b"}
    ranges = column_ranges(metadata.partition("column_stats"), ["v"], ["a", "b"])
    assert ranges["b"][f"{GROUP}_0-0-0_2.parquet"]["v"].maximum == pa.scalar(3.0)
    whole = partition_ranges(metadata.partition("partition_stats"), ["v"], ["a"])
    assert whole["a"]["v"].value_count == 2


def test_writes_go_on_where_partitions_were_added() -> None:
    table, present, located = with_data()
    add(table, present, located)
    table.write(located=(Located(pa.array(["4"]), FileGroupId("b", GROUP)),))
    assert len(all_locations(table.metadata.record_index())) == 4


def test_partition_statistics_are_made_of_the_columns_that_are_defined() -> None:
    table, present, located = with_data()
    chosen = BuildOptions(columns=("_hoodie_record_key", "v"))
    add(table, present, located, chosen, ["column_stats"])
    add(table, present, located)
    whole = partition_ranges(table.metadata.partition("partition_stats"), ["v", "n"], ["a"])
    assert whole["a"].keys() == {"v"}


def test_a_table_without_metadata_gets_a_whole_metadata_table() -> None:
    table, present, located = with_data()
    update_properties(table.storage, {"hoodie.table.metadata.partitions": None})
    add(table, present, located)
    assert MetadataListing(table.metadata.partition("files")).partitions() == ("a", "b")


def test_a_crash_while_partitions_are_added_is_made_good_by_adding_them_again() -> None:
    table, present, located = with_data()
    rehearsal = FaultyStorage(table.storage)
    add(TableInMemory(rehearsal, table.clock), present, located)
    writing = [call for call in rehearsal.calls if call.operation in ("put", "create_exclusive")]
    for plan in list(crash_plans(writing))[::7]:
        table, present, located = with_data()
        with suppress(Crashed):
            broken = TableInMemory(FaultyStorage(table.storage, plan), table.clock)
            add(broken, present, located)
        assert MetadataListing(table.metadata.partition("files")).partitions() == ("a", "b")
        add(table, present, located)
        assert len(all_locations(table.metadata.record_index())) == 3, plan
        state = load_metadata_table(table.storage, table.config)
        for one in state.timeline.active.completed():
            commit.decode(state.timeline.active.read(one), str(plan))
