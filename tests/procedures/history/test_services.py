"""Compactions, clusterings, cleans and rollbacks as procedures show them."""

import pytest

from lakewarden.engine.kernel.errors import CorruptTable
from tests.golden_tables import GoldenTable
from tests.procedures.calls import call


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("mor_compaction_requested", "REQUESTED"),
        ("mor_compaction_inflight", "INFLIGHT"),
        ("mor_compaction_completed", "COMPLETED"),
    ],
)
def test_compactions_are_shown_in_every_state(name: str, state: str, golden: GoldenTable) -> None:
    (row,) = call("show_compaction", path=str(golden(name)))
    assert (row["operation_size"], row["state"]) == (3, state)


def test_a_torn_plan_is_shown_without_figures(golden_copy: GoldenTable) -> None:
    path = golden_copy("mor_compaction_requested")
    (plan,) = (path / ".hoodie" / "timeline").glob("*.compaction.requested")
    plan.write_bytes(plan.read_bytes()[:100])
    (row,) = call("show_compaction", path=str(path))
    assert (row["operation_size"], row["state"]) == (None, "REQUESTED")


def test_a_clustering_names_its_partitions_when_asked(golden: GoldenTable) -> None:
    path = str(golden("mor_clustering_requested"))
    assert call("show_clustering", path=path)[0]["involved_partitions"] == "*"
    (row,) = call("show_clustering", path=path, show_involved_partition=True)
    assert (row["input_group_size"], row["state"]) == (3, "REQUESTED")
    assert row["involved_partitions"] == "p=a,p=b,p=c"


def test_overwrites_are_no_clusterings(golden: GoldenTable) -> None:
    assert call("show_clustering", path=str(golden("cow_overwrite_and_delete_partition"))) == []
    assert call("show_clustering", path=str(golden("cow_clustering_completed"))) != []


def test_cleans_by_clean_and_by_partition_agree(golden: GoldenTable) -> None:
    path = str(golden("mor_archived_lsm_levels"))
    cleans = call("show_cleans", path=path, showArchived=True, limit=100)
    by_partition = call("show_cleans_metadata", path=path, showArchived=True, limit=1000)
    assert len(cleans) > len(call("show_cleans", path=path, limit=100)) > 0
    for clean in cleans:
        removed = [
            row["success_delete_files"]
            for row in by_partition
            if row["clean_time"] == clean["clean_time"]
        ]
        assert sum(map(int, map(str, removed))) == clean["total_files_deleted"]


def test_plans_of_cleans_are_shown_before_and_after(golden: GoldenTable) -> None:
    (plan,) = call("show_clean_plans", path=str(golden("cow_clean_requested")))
    assert (plan["state"], plan["policy"]) == ("REQUESTED", "KEEP_LATEST_COMMITS")
    assert plan["total_partitions_to_clean"] == 3
    assert call("show_cleans", path=str(golden("cow_clean_requested"))) == []
    archived = call(
        "show_clean_plans", path=str(golden("mor_archived_lsm_levels")), showArchived=True, limit=99
    )
    assert {plan["state"] for plan in archived} == {"COMPLETED"}


def test_rollbacks_in_all_and_by_file(golden: GoldenTable) -> None:
    path = str(golden("mor_rollback_of_failed_write"))
    (row,) = call("show_rollbacks", path=path)
    assert (row["rollback_instant"], row["total_files_deleted"]) == ("20261118130226212", 6)
    files = call("show_rollback_detail", path=path, instant_time=row["instant"])
    assert len(files) == 6
    assert all(file["succeeded"] for file in files)
    assert {file["rollback_instant"] for file in files} == {"20261118130226212"}


def test_nothing_to_show_is_no_row(path: str) -> None:
    for name in ("show_compaction", "show_clustering", "show_cleans", "show_rollbacks"):
        assert call(name, path=path) == []


def test_an_unreadable_clean_is_an_error_that_names_it(golden_copy: GoldenTable) -> None:
    path = golden_copy("cow_clean_keep_latest_commits")
    file = max((path / ".hoodie" / "timeline").glob("*_*.clean"))
    file.write_bytes(b"nonsense")
    with pytest.raises(CorruptTable, match=file.name):
        call("show_cleans", path=str(path))
