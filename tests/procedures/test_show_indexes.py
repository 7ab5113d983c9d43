"""`show_indexes` tells what there is, what is being built, and what never will be."""

import pytest

from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.properties_file import update_properties
from tests.golden_tables import GoldenTable
from tests.procedures.calling import assert_promises, call


def test_arguments_and_columns_are_as_promised() -> None:
    columns = [
        "index_name STRING",
        "partition_name STRING",
        "index_type STRING",
        "columns STRING",
        "state STRING",
        "instant STRING",
        "file_groups_count BIGINT",
        "bytes BIGINT",
        "owner STRING",
    ]
    assert_promises({"show_indexes": (["table", "path"], columns)})


def test_indexes_have_both_names_and_what_they_take(golden: GoldenTable) -> None:
    path = golden("mor_secondary_index")
    rows = {row["index_name"]: row for row in call("show_indexes", path)}
    assert "files" not in rows
    index = rows["idx_name"]
    assert index["partition_name"] == "secondary_index_idx_name"
    assert (index["index_type"], index["columns"]) == ("secondary_index", "name")
    assert rows["record_index"]["columns"] == "id"
    folder = path / ".hoodie" / "metadata" / "record_index"
    assert rows["record_index"]["file_groups_count"] == 10
    assert 0 < rows["record_index"]["bytes"] <= sum(f.stat().st_size for f in folder.iterdir())
    assert {row["state"] for row in rows.values()} == {"READY"}


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("mor_indexing_requested", "PLANNED"),
        ("mor_indexing_inflight", "BUILDING"),
        ("mor_indexing_async_completed", "READY"),
    ],
)
def test_an_index_that_java_builds_has_its_state(
    name: str, state: str, golden: GoldenTable
) -> None:
    rows = {row["index_name"]: row for row in call("show_indexes", golden(name))}
    assert rows["bloom_filters"]["state"] == state
    assert rows["bloom_filters"]["instant"]


def test_an_index_that_nobody_builds_any_more_is_abandoned(golden_copy: GoldenTable) -> None:
    path = golden_copy("cow_bloom_column_partition_stats")
    inflight = {"hoodie.table.metadata.partitions.inflight": "record_index"}
    update_properties(open_storage(Location(str(path))), inflight)
    rows = {row["index_name"]: row for row in call("show_indexes", path)}
    assert rows["record_index"]["state"] == "ABANDONED"
    assert rows["record_index"]["instant"] is None
