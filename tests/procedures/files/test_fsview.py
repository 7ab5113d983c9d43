"""Views of files are those of Java, on tables that Java wrote."""

from typing import Any

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from tests.golden_tables import GOLDEN_TABLES, GoldenDocument, GoldenTable
from tests.procedures.calls import Rows, call

VIEWED = (
    "mor_compaction_inflight",
    "cow_clustering_completed",
    "v6_mor",
    "mor_nbcc",
    "v8_mor_by_102",
)


def slices(rows: Rows) -> set[tuple[object, ...]]:
    return {
        (
            row["partition"],
            row["file_id"],
            row["base_instant"],
            row["data_file"].rpartition("/")[2],
            row["num_delta_files"],
        )
        for row in rows
    }


def java_slice(partition: str, found: dict[str, Any]) -> tuple[object, ...]:
    base = found["base_file"] or ""
    return partition, found["file_id"], found["base_instant"], base, len(found["log_files"])


@pytest.mark.parametrize("name", VIEWED)
def test_all_slices_and_the_latest_are_those_of_java(
    name: str, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    assert name in GOLDEN_TABLES
    path, partitions = str(golden(name)), golden_document(name)["fsview"]["partitions"]
    every = {
        java_slice(partition, one)
        for partition, found in partitions.items()
        for group in found["file_groups"].values()
        for one in group
    }
    latest = {
        java_slice(partition, one)
        for partition, found in partitions.items()
        for one in found["latest_merged"]
    }
    assert slices(call("show_fsview_all", path=path, limit=1000)) == every
    assert slices(call("show_fsview_latest", path=path, limit=1000)) == latest


def test_logs_in_a_pending_plan_are_told_from_those_after_it(
    golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    name = "mor_compaction_inflight"
    plan = golden_document(name)["fsview"]["pending_compaction"]
    planned = {log for operation in plan for log in operation["log_files"]}
    for row in call("show_fsview_latest", path=str(golden(name))):
        scheduled = set(filter(None, row["delta_files_compaction_scheduled"][1:-1].split(", ")))
        unscheduled = set(filter(None, row["delta_files_compaction_unscheduled"][1:-1].split(", ")))
        assert scheduled <= planned
        assert not unscheduled & planned
        assert row["delta_size_compaction_scheduled"] > 0
        ratio = row["delta_size_compaction_scheduled"] / row["data_file_size"]
        assert row["delta_to_base_radio_compaction_scheduled"] == ratio


def test_a_view_ends_before_an_instant_or_with_it(golden: GoldenTable) -> None:
    path = str(golden("mor_compaction_inflight"))
    second = "20261118125729577"
    before = call("show_fsview_all", path=path, max_instant=second)
    until = call("show_fsview_all", path=path, max_instant=second, include_max=True)
    assert {row["num_delta_files"] for row in before} == {0}
    assert {row["num_delta_files"] for row in until} == {1}
    with pytest.raises(InvalidRequest, match="'yesterday' is not an instant"):
        call("show_fsview_all", path=path, max_instant="yesterday")


def test_what_is_being_written_is_seen_when_asked_for(golden: GoldenTable) -> None:
    path = str(golden("cow_failed_write_pending"))
    known = slices(call("show_fsview_all", path=path, limit=100))
    with_pending = slices(call("show_fsview_all", path=path, limit=100, include_in_flight=True))
    assert known < with_pending


def test_partitions_are_chosen_by_a_pattern(golden: GoldenTable) -> None:
    path = str(golden("mor_compaction_inflight"))
    (row,) = call("show_fsview_latest", path=path, path_regex="p=[bd]")
    assert row["partition"] == "p=b"
    (same,) = call("show_fsview_latest", path=path, partition_path="p=b")
    assert same == row
    assert call("show_fsview_all", path=path, path_regex="none") == []
    with pytest.raises(InvalidRequest, match="gives path_regex and partition_path"):
        call("show_fsview_latest", path=path, path_regex="p=b", partition_path="p=b")
