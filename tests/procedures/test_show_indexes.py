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
        "indexed_up_to STRING",
        "caught_up_to STRING",
        "lag_count BIGINT",
        "entries_count BIGINT",
        "step STRING",
        "done_ratio DOUBLE",
        "waits_for STRING",
        "reason STRING",
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
    assert rows["record_index"]["state"] == "READY"
    assert rows["record_index"]["entries_count"] >= 12


@pytest.mark.parametrize(
    ("name", "index", "state", "reason"),
    [
        ("mor_indexing_requested", "bloom_filters", "PLANNED", None),
        ("mor_indexing_inflight", "bloom_filters", "ABANDONED", "run_indexing"),
        ("indexing/cow_build_record_planned", "record_index", "PLANNED", None),
        ("indexing/cow_build_record_done", "record_index", "READY", None),
        ("indexing/cow_build_record_dead", "record_index", "ABANDONED", "Java Hudi began it"),
        ("indexing/cow_build_secondary_dead", "by_name", "ABANDONED", "Java Hudi began it"),
        # Java lists an index before it has caught up, for ever where it dies then.
        ("indexing/cow_build_secondary_listed", "by_name", "ABANDONED", "has not completed"),
        ("indexing/cow_indexing_record_listed", "record_index", "ABANDONED", "has not completed"),
        ("indexing/mor_indexing_bloom_logged", "bloom_filters", "ABANDONED", "Java Hudi began it"),
        ("indexing/cow_indexing_scheduled_twice", "bloom_filters", "READY", None),
        ("indexing/cow_indexing_record_keys_lost", "record_index", "STALE", "ran beside its build"),
        ("indexing/cow_indexing_secondary_lost", "by_name", "STALE", "ran beside its build"),
        ("mor_indexing_async_completed", "bloom_filters", "STALE", "ran beside its build"),
        ("indexing/cow_indexing_record_rolled_back", "record_index", "STALE", "was rolled back"),
        ("indexing/cow_indexing_record_rolled_back", "by_name", "STALE", "needs the record index"),
        ("indexing/cow_restore_drops_secondary", "record_index", "STALE", "The restore"),
        ("indexing/mor_secondary_three", "by_v", "STALE", "only one of several"),
        ("indexing/cow_build_column_stats_done", "partition_stats", "READY", "another engine"),
    ],
)
def test_an_index_of_java_has_its_state_and_why(
    name: str, index: str, state: str, reason: str | None, golden: GoldenTable
) -> None:
    rows = {row["index_name"]: row for row in call("show_indexes", golden(name))}
    assert rows[index]["state"] == state
    assert (rows[index]["reason"] is None) is (reason is None)
    assert reason is None or reason in rows[index]["reason"]


@pytest.mark.parametrize(
    ("name", "state"),
    [("mor_indexing_inflight", "BUILDING"), ("indexing/cow_indexing_record_listed", "CATCHING_UP")],
)
def test_java_is_taken_for_alive_while_its_last_step_is_fresh(
    name: str, state: str, golden_copy: GoldenTable
) -> None:
    path = golden_copy(name)
    (inflight,) = (path / ".hoodie/timeline").glob("*.indexing.inflight")
    inflight.touch()
    (row,) = (row for row in call("show_indexes", path) if row["owner"] == "Java Hudi")
    assert row["state"] == state


def test_an_index_that_was_built_anew_is_not_stale_any_more(golden_copy: GoldenTable) -> None:
    path = golden_copy("indexing/mor_secondary_three")
    call("refresh_index", path, index_name="by_v")
    rows = {row["index_name"]: row for row in call("show_indexes", path)}
    assert (rows["by_v"]["state"], rows["by_v"]["reason"]) == ("READY", None)
    assert rows["by_n"]["state"] == "STALE"


def test_an_index_that_nobody_builds_any_more_is_abandoned(golden_copy: GoldenTable) -> None:
    path = golden_copy("cow_bloom_column_partition_stats")
    inflight = {"hoodie.table.metadata.partitions.inflight": "record_index"}
    update_properties(open_storage(Location(str(path))), inflight)
    rows = {row["index_name"]: row for row in call("show_indexes", path)}
    assert rows["record_index"]["state"] == "ABANDONED"
    assert rows["record_index"]["instant"] is None
    assert "DROP INDEX" in rows["record_index"]["reason"]
