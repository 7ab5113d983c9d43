"""The procedures about the metadata table, on tables that Java wrote and on damaged ones."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import InvalidRequest
from tests.golden_tables import GoldenDocument, GoldenTable
from tests.procedures.calling import assert_promises, call

STATISTICS = "cow_bloom_column_partition_stats"
PROMISED = {
    "show_metadata_table_partitions": (["table", "path", "filter"], ["partition STRING"]),
    "show_metadata_table_files": (
        ["table", "path", "partition", "limit", "filter"],
        ["file_path STRING"],
    ),
    "show_metadata_table_stats": (
        ["table", "path", "filter"],
        ["stat_key STRING", "stat_value STRING"],
    ),
    "show_metadata_table_column_stats": (
        ["table", "path", "partition", "target_columns", "filter"],
        [
            "file_name STRING",
            "column_name STRING",
            "min_value STRING",
            "max_value STRING",
            "null_number BIGINT",
        ],
    ),
    "show_metadata_column_stats_overlap": (
        ["table", "path", "partition", "target_columns", "filter"],
        [
            "Partition path STRING",
            "Field name STRING",
            "Average overlap DOUBLE",
            "Maximum file overlap BIGINT",
            "Total file number BIGINT",
            "50% overlap BIGINT",
            "75% overlap BIGINT",
            "95% overlap BIGINT",
            "99% overlap BIGINT",
            "Total value number BIGINT",
        ],
    ),
    "validate_metadata_table_files": (
        ["table", "verbose", "path"],
        [
            "partition STRING",
            "file_name STRING",
            "is_present_in_fs BOOLEAN",
            "is_present_in_metadata BOOLEAN",
            "fs_size BIGINT",
            "metadata_size BIGINT",
        ],
    ),
}


def test_arguments_and_columns_are_those_that_hudi_users_know() -> None:
    assert_promises(PROMISED)


def test_partitions_are_those_that_java_sees(
    golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    rows = call("show_metadata_table_partitions", golden(STATISTICS))
    assert [row["partition"] for row in rows] == sorted(
        golden_document(STATISTICS)["fsview"]["partitions"]
    )


def test_files_are_those_that_java_sees(
    golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    found = {row["file_path"] for row in call("show_metadata_table_files", golden(STATISTICS))}
    seen = json.dumps(golden_document(STATISTICS)["fsview"])
    assert found
    assert all(path.split("/")[1] in seen for path in found)
    only = call("show_metadata_table_files", golden(STATISTICS), partition="a")
    assert {row["file_path"] for row in only} == {path for path in found if path[:2] == "a/"}
    assert len(call("show_metadata_table_files", golden(STATISTICS), limit=2)) == 2


def test_sizes_are_those_of_the_files(golden: GoldenTable) -> None:
    path = golden(STATISTICS)
    figures = {
        row["stat_key"]: int(row["stat_value"]) for row in call("show_metadata_table_stats", path)
    }
    folder = path / ".hoodie" / "metadata" / "bloom_filters"
    assert figures["bloom_filters.fileGroupCount"] == 4
    assert figures["bloom_filters.totalBaseFileSizeInBytes"] == sum(
        file.stat().st_size for file in folder.glob("*.hfile")
    )


def test_statistics_are_those_of_the_files(golden: GoldenTable) -> None:
    path = golden(STATISTICS)
    (file,) = Table(str(path)).file_slices("b")
    assert file.base_file is not None
    rows = pq.ParquetFile(path / "b" / file.base_file.name).read()
    found = {
        row["column_name"]: row
        for row in call(
            "show_metadata_table_column_stats", path, partition="b", targetColumns="id, v"
        )
        if row["file_name"] == file.base_file.name
    }
    keys, values = sorted(rows.column("id").to_pylist()), sorted(rows.column("v").to_pylist())
    assert found.keys() == {"id", "v"}
    assert (found["id"]["min_value"], found["id"]["max_value"]) == (keys[0], keys[-1])
    assert (found["v"]["min_value"], found["v"]["max_value"]) == (str(values[0]), str(values[-1]))


@pytest.mark.parametrize("name", ["cow_all_types", "mor_all_types", "v8_mor_by_102"])
def test_values_of_every_type_are_texts(name: str, golden: GoldenTable) -> None:
    rows = call("show_metadata_table_column_stats", golden(name))
    assert any(row["min_value"] for row in rows)
    assert all(isinstance(row["max_value"], str | None) for row in rows)


def test_overlaps_are_counted_at_every_bound(tmp_path: Path) -> None:
    table = overlapping_table(tmp_path)
    (row,) = call("show_metadata_column_stats_overlap", table, targetColumns="n")
    # 1..5 and 3..7 overlap, 7..8 meets the second in one value: bounds 1, 3, 5, 7, 8.
    assert list(row.values()) == ["", "n", 8 / 5, 2, 3, 2, 2, 2, 2, 5]


def overlapping_table(folder: Path) -> Path:
    """Three base files with the ranges 1..5, 3..7 and 7..8."""
    schema = pa.schema([("id", pa.string()), ("n", pa.int64())])
    table = Table.create(str(folder / "t"), schema, key=["id"])
    for number, (low, high) in enumerate(((1, 5), (3, 7), (7, 8))):
        ids = [f"{number}low", f"{number}high"]
        table.bulk_insert(pa.table({"id": ids, "n": [low, high]}, schema=schema))
    return folder / "t"


def test_a_table_that_is_sound_shows_no_difference(golden: GoldenTable) -> None:
    assert call("validate_metadata_table_files", golden("mor_record_index_global")) == []
    rows = call("validate_metadata_table_files", golden("mor_record_index_global"), verbose=True)
    assert rows
    assert all(row["fs_size"] == row["metadata_size"] for row in rows)


def test_what_is_pending_makes_no_difference(golden: GoldenTable) -> None:
    assert call("validate_metadata_table_files", golden("mor_failed_write_pending")) == []


def test_differences_are_shown_with_both_sizes(golden_copy: GoldenTable) -> None:
    path = golden_copy(STATISTICS)
    gone, longer, _ = sorted(path.glob("a/*.parquet"))
    size = gone.stat().st_size
    gone.unlink()
    with longer.open("ab") as file:
        file.write(b"more")
    stray = longer.with_name(f"stray-0_0-0-0_{'2' * 17}.parquet")
    stray.write_bytes(b"stray")
    found = {row["file_name"]: row for row in call("validate_metadata_table_files", path)}
    assert found.keys() == {gone.name, longer.name, stray.name}
    assert list(found[gone.name].values())[2:] == [False, True, None, size]
    assert found[longer.name]["fs_size"] == found[longer.name]["metadata_size"] + 4
    assert list(found[stray.name].values())[2:] == [True, False, 5, None]


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_a_table_without_metadata_table_is_refused_by_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as refused:
        call(name, bare_table(tmp_path))
    assert refused.value.code in ("no_metadata_table", "no_column_stats")


def bare_table(folder: Path) -> Path:
    schema = pa.schema([("id", pa.string())])
    properties = {"hoodie.metadata.enable": False}
    Table.create(str(folder / "bare"), schema, key=["id"], properties=properties)
    return folder / "bare"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"partition": "nowhere"}, "unknown_partition"),
        ({"target_columns": "vv"}, "unknown_statistics_column"),
    ],
)
def test_what_is_not_there_is_refused_by_name(
    arguments: dict[str, str], code: str, golden: GoldenTable
) -> None:
    for name in ("show_metadata_table_column_stats", "show_metadata_column_stats_overlap"):
        with pytest.raises(InvalidRequest) as refused:
            call(name, golden(STATISTICS), **arguments)
        assert refused.value.code == code
