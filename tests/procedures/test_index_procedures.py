"""Creating, refreshing and dropping indexes by procedures."""

from pathlib import Path

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.timeline.instants.instant import Action
from tests.golden_tables import GoldenTable
from tests.procedures.calling import assert_promises, call

BUILT = [
    "index_name STRING",
    "partition_name STRING",
    "instant STRING",
    "state STRING",
    "indexed_up_to STRING",
    "caught_up_to STRING",
    "records_count BIGINT",
    "file_groups_count BIGINT",
    "message STRING",
]
PROMISED = {
    "create_index": (
        [
            "index_name",
            "table",
            "columns",
            "index_type",
            "if_not_exists",
            "options",
            "column_options",
            "dry_run",
            "path",
        ],
        BUILT,
    ),
    "build_index": (
        ["index_name", "table", "index_type", "columns", "options", "op", "dry_run", "path"],
        BUILT,
    ),
    "refresh_index": (["index_name", "table", "dry_run", "path"], BUILT),
    "drop_index": (
        ["index_name", "table", "if_exists", "dry_run", "path"],
        [
            "index_name STRING",
            "partition_name STRING",
            "freed_bytes BIGINT",
            "message STRING",
        ],
    ),
    "set_index": (
        ["index_type", "table", "options", "dry_run", "path"],
        ["index_type STRING", "buckets_count BIGINT", "is_changed BOOLEAN", "message STRING"],
    ),
    "create_metadata_table": (["table", "dry_run", "path"], ["result STRING"]),
    "delete_metadata_table": (["table", "dry_run", "path"], ["result STRING"]),
    "init_metadata_table": (["table", "read_only", "dry_run", "path"], ["result STRING"]),
}
SCHEMA = pa.schema([("id", pa.string()), ("k", pa.string()), ("city", pa.string())])


def test_arguments_and_columns_are_as_promised() -> None:
    assert_promises(PROMISED)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of three rows, with a key of two columns."""
    made = Table.create(str(tmp_path / "t"), SCHEMA, key=["id", "k"])
    made.upsert(pa.table({"id": ["1", "2", "3"], "k": ["a"] * 3, "city": ["x"] * 3}, SCHEMA))
    return tmp_path / "t"


def states(path: Path) -> dict[str, str]:
    return {row["index_name"]: row["state"] for row in call("show_indexes", path)}


def test_a_record_index_is_built_once(table: Path) -> None:
    (row,) = call("create_index", table, index_name="record_index", columns=["k", "id"])
    newest = Table(str(table)).timeline().completed()[-1].requested
    (built,) = Table(str(table)).timeline().completed((Action.INDEXING,))
    assert row | {"message": ""} == {
        "index_name": "record_index",
        "partition_name": "record_index",
        "instant": built.requested,
        "state": "READY",
        "indexed_up_to": newest,
        "caught_up_to": newest,
        "records_count": 3,
        "file_groups_count": 10,
        "message": "",
    }
    assert states(table)["record_index"] == "READY"
    with pytest.raises(InvalidRequest, match="IF NOT EXISTS"):
        call("create_index", table, index_name="record_index", columns=["id", "k"])
    (again,) = call("create_index", table, index_name="record_index", if_not_exists=True)
    assert "already" in again["message"]


@pytest.mark.parametrize(
    "asked",
    [
        {"index_name": "record_index"},
        {"index_name": "by_key", "columns": "id,k"},
        {"index_name": "by_key", "columns": ["id", "k"], "index_type": "RECORD_INDEX"},
        {"index_name": "r", "index_type": "record_index"},
    ],
)
def test_a_record_index_is_known_by_its_key_or_type(asked: dict[str, object], table: Path) -> None:
    (row,) = call("create_index", table, **asked)
    assert row["partition_name"] == "record_index"


@pytest.mark.parametrize(
    ("asked", "partition"),
    [
        ({"index_name": "i", "columns": ["city"]}, "secondary_index_i"),
        (
            {"index_name": "b", "columns": ["id", "k"], "index_type": "bloom_filters"},
            "bloom_filters",
        ),
        (
            {
                "index_name": "e",
                "columns": ["city"],
                "index_type": "column_stats",
                "options": {"expr": "upper"},
            },
            "expr_index_e",
        ),
        (
            {
                "index_name": "f",
                "columns": ["city"],
                "index_type": "bloom_filters",
                "options": {"func": "lower"},
            },
            "expr_index_f",
        ),
    ],
)
def test_every_kind_is_built_by_its_form(
    asked: dict[str, object], partition: str, table: Path
) -> None:
    call("create_index", table, index_name="record_index")
    (row,) = call("create_index", table, **asked)
    assert (row["partition_name"], row["state"]) == (partition, "READY")


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"index_name": "i", "columns": ["city"]}, "record_index_needed"),
        (
            {"index_name": "i", "columns": ["city"], "index_type": "secondary_index"},
            "record_index_needed",
        ),
        (
            {"index_name": "i", "columns": ["city"], "index_type": "bloom_filters"},
            "not_the_record_key",
        ),
        ({"index_name": "i", "columns": ["id"]}, "bad_index_columns"),
        ({"index_name": "i", "columns": ["id", "city"]}, "bad_index_columns"),
        ({"index_name": "i", "columns": ["city", "_hoodie_file_name"]}, "unknown_column"),
        ({"index_name": "i"}, "bad_index_columns"),
        (
            {"index_name": "i", "columns": ["city"], "index_type": "record_index"},
            "not_the_record_key",
        ),
        ({"index_name": "i", "columns": ["town"]}, "unknown_column"),
        ({"index_name": "i", "columns": ["city"], "index_type": "lucene"}, "unknown_index_type"),
        ({"index_name": "column_stats", "options": "x=1"}, "unknown_index_option"),
        ({"index_name": "column_stats", "options": {"hoodie.x": "1"}}, "unknown_option"),
        ({"index_name": "partition_stats"}, "unsupported_metadata_partition"),
        (
            {"index_name": "record_index", "options": "isPartitioned=true"},
            "unsupported_metadata_partition",
        ),
    ],
)
def test_what_cannot_be_built_is_refused_by_name(
    asked: dict[str, object], code: str, table: Path
) -> None:
    before = sorted(table.rglob("*"))
    with pytest.raises(InvalidRequest) as refused:
        call("create_index", table, **asked)
    assert refused.value.code == code
    assert sorted(table.rglob("*")) == before


def test_a_dry_run_changes_nothing(table: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in table.rglob("*")}
    (row,) = call("create_index", table, index_name="record_index", dry_run=True)
    assert row["message"].startswith("It would")
    for name in ("refresh_index", "drop_index"):
        (row,) = call(name, table, index_name="column_stats", dry_run=True)
        assert "would" in row["message"]
    (row,) = call("delete_metadata_table", table, dry_run=True)
    assert row["result"].startswith("Would remove")
    assert {file: file.stat().st_mtime_ns for file in table.rglob("*")} == before


def test_indexes_are_built_and_refreshed_all_at_once(table: Path) -> None:
    for name in ("build_index", "build_index", "refresh_index"):
        (row,) = call(name, table, index_name="record_index")
        assert row["state"] == "READY"
    (there,) = call("build_index", table, index_name="record_index", op="schedule")
    assert "already" in there["message"]
    with pytest.raises(InvalidRequest, match="no index 'by_city'"):
        call("refresh_index", table, index_name="by_city")


def test_what_is_not_there_is_dropped_only_if_that_is_said(table: Path) -> None:
    with pytest.raises(InvalidRequest, match="no index 'by_city'"):
        call("drop_index", table, index_name="by_city")
    (row,) = call("drop_index", table, index_name="by_city", if_exists=True)
    assert row["partition_name"] is None
    assert "nothing to do" in row["message"]


@pytest.mark.parametrize("name", ["mor_secondary_index", "cow_expression_index"])
def test_what_java_has_built_stays_through_a_write(name: str, golden_copy: GoldenTable) -> None:
    table = Table(str(golden_copy(name)))
    before, rows = table.config.metadata_partitions, table.read_arrow()
    mine = rows.select([one for one in rows.column_names if not one.startswith("_hoodie_")])
    table.upsert(mine)
    assert table.read_arrow().num_rows == rows.num_rows
    assert set(before) <= set(table.config.metadata_partitions)


def test_an_index_that_another_one_needs_stays(golden_copy: GoldenTable) -> None:
    path = golden_copy("mor_secondary_index")
    with pytest.raises(InvalidRequest) as refused:
        call("drop_index", path, index_name="record_index")
    assert refused.value.code == "index_is_needed"


def test_the_building_of_an_index_that_nobody_carries_on_can_be_ended(
    golden_copy: GoldenTable,
) -> None:
    path = golden_copy("mor_indexing_inflight")
    assert states(path)["bloom_filters"] == "ABANDONED"
    call("drop_index", path, index_name="bloom_filters")
    assert "bloom_filters" not in states(path)


def test_a_metadata_table_goes_and_comes(table: Path) -> None:
    (row,) = call("create_metadata_table", table)
    assert row["result"].startswith("It already exists")
    assert "Nothing to do" in call("init_metadata_table", table)[0]["result"]
    call("drop_index", table, index_name="column_stats")
    assert call("init_metadata_table", table)[0]["result"] == "Added column_stats."
    assert call("delete_metadata_table", table)[0]["result"].startswith("Removed")
    assert call("delete_metadata_table", table)[0]["result"] == "There is none."
    with pytest.raises(InvalidRequest, match="no metadata table"):
        call("init_metadata_table", table)
    assert call("create_metadata_table", table)[0]["result"].startswith("Created")
    assert call("validate_metadata_table_files", table) == []


def test_the_index_of_writes_is_set_where_the_rows_allow_it(table: Path) -> None:
    (row,) = call("set_index", table, index_type="BLOOM")
    assert row == {
        "index_type": "BLOOM",
        "buckets_count": None,
        "is_changed": True,
        "message": "The index is BLOOM.",
    }
    assert not call("set_index", table, index_type="BLOOM")[0]["is_changed"]
    with pytest.raises(InvalidRequest, match="new table"):
        call(
            "set_index",
            table,
            index_type="BUCKET",
            options={"hoodie.bucket.index.num.buckets": "2"},
        )
