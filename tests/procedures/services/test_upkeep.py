"""Cleans, archivals and what else keeps a table small: what is done, and why nothing."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakewarden import Conflict, InvalidRequest, Table
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.transaction.start import start
from lakewarden.engine.transaction.sweep.sweep import schedule_sweep
from lakewarden.table_service_handle import Plan
from tests.crash.dying_operations import ports
from tests.engine.services.service_table import COW, FLAT_MOR, MOR, inserted, updated
from tests.procedures.calls import call, call_one, contents_of, context_of
from tests.writing.shapes import carry_out

UNKNOWN = "20200101000000000"


@pytest.fixture(scope="module")
def seven_commits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy-on-write table with seven commits, to be copied only."""
    path = tmp_path_factory.mktemp("rewritten") / "table"
    table = COW.create(str(path))
    # Nothing is archived that the metadata table still needs for a compaction of its own.
    table.set_settings({"hoodie.metadata.compact.max.delta.commits": "4"})
    carry_out(table, inserted())
    for number in range(6):
        carry_out(table, updated(ts=2 + number))
    return path


@pytest.fixture
def rewritten(seven_commits: Path, tmp_path: Path) -> str:
    return str(shutil.copytree(seven_commits, tmp_path / "rewritten"))


RETENTION = {"retain_commits": 2, "options": "hoodie.keep.min.commits=3,hoodie.keep.max.commits=4"}


def test_a_clean_tells_what_it_has_removed(rewritten: str) -> None:
    before = contents_of(Path(rewritten))
    dry_run_result = call_one("run_clean", rewritten, dry_run=True, **RETENTION)
    assert contents_of(Path(rewritten)) == before
    done = call_one("run_clean", rewritten, **RETENTION)
    for column in ("total_files_deleted", "deleted_bytes", "earliest_commit_to_retain", "version"):
        assert done[column] == dry_run_result[column], column
    assert done["total_files_deleted"] == 8
    assert (dry_run_result["start_clean_time"], done["version"]) == (None, 2)
    gone = set(before) - set(contents_of(Path(rewritten)))
    assert sum(name.endswith(".parquet") for name in gone) == done["total_files_deleted"]
    again = call_one("run_clean", rewritten, **RETENTION)
    assert (again["start_clean_time"], again["total_files_deleted"]) == (None, 0)
    assert again["message"]


def test_a_clean_by_versions_or_hours_keeps_what_it_is_told(rewritten: str) -> None:
    by_hours = call_one("run_clean", rewritten, clean_policy="keep_latest_by_hours", dry_run=True)
    assert by_hours["total_files_deleted"] == 0
    plan_request = {"clean_policy": "KEEP_LATEST_FILE_VERSIONS", "file_versions_retained": 1}
    assert (
        call_one("run_clean", rewritten, dry_run=True, **plan_request)["total_files_deleted"] == 12
    )


def test_a_clean_waits_for_the_trigger_that_a_call_names(rewritten: str) -> None:
    row = call_one("run_clean", rewritten, trigger_max_commits=50, **RETENTION)
    assert row["start_clean_time"] is None
    assert "50" in str(row["message"])


def test_without_a_new_plan_only_pending_cleans_are_finished(rewritten: str) -> None:
    assert call_one("run_clean", rewritten, schedule_in_line=False)["total_files_deleted"] == 0
    done = call_one("run_clean", rewritten, **RETENTION)
    # As a clean leaves it that dies before it has started.
    timeline = Path(rewritten, ".hoodie", "timeline")
    (completed,) = timeline.glob(f"{done['start_clean_time']}_*.clean")
    completed.unlink()
    before = contents_of(Path(rewritten))
    (dry_run_result,) = call("run_clean", rewritten, schedule_in_line=False, dry_run=True)
    assert contents_of(Path(rewritten)) == before
    assert dry_run_result["start_clean_time"] == done["start_clean_time"]
    assert dry_run_result["total_files_deleted"] == 8


@pytest.mark.parametrize(
    "arguments",
    [
        {"clean_policy": "KEEP_EVERYTHING"},
        {"retain_commits": 0},
        {"retain_commits": 30},
        {"trigger_strategy": "WHENEVER"},
        {"options": "hoodie.clean.commits.retaind=3"},
    ],
)
def test_bad_wishes_of_a_clean_change_nothing(rewritten: str, arguments: dict[str, object]) -> None:
    before = contents_of(Path(rewritten))
    with pytest.raises(InvalidRequest):
        call("run_clean", rewritten, **arguments)
    assert contents_of(Path(rewritten)) == before


def test_old_commits_are_archived_as_far_as_cleans_allow(rewritten: str) -> None:
    limits = {"min_commits": 3, "max_commits": 4, "retain_commits": 2}
    call("run_clean", rewritten, **RETENTION)
    before = contents_of(Path(rewritten))
    dry_run_result = call_one("archive_commits", path=rewritten, dry_run=True, **limits)
    assert contents_of(Path(rewritten)) == before
    done = call_one("archive_commits", rewritten, None, 3, 4, 2)
    assert done["result"] == 0
    assert done["archived_instants_count"] == dry_run_result["archived_instants_count"] > 0
    active = {one.requested for one in Table(rewritten).timeline().completed()}
    assert done["oldest_kept_instant"] == min(active)
    again = call_one("archive_commits", path=rewritten)
    assert (again["result"], again["archived_instants_count"]) == (0, 0)
    assert again["message"]
    with pytest.raises(InvalidRequest):
        call("archive_commits", path=rewritten, min_commits=9, max_commits=3)


def test_the_archive_and_the_metadata_table_are_looked_after(rewritten: str) -> None:
    before = contents_of(Path(rewritten))
    row = call_one("run_timeline_compaction", path=rewritten, dry_run=True)
    assert (row["files_before_count"], row["files_after_count"]) == (0, 0)
    assert row["message"] == "There are too few files to merge."
    services = "compaction, Archive"
    dry_run_result = call(
        "run_metadata_maintenance", path=rewritten, services=services, dry_run=True
    )
    assert contents_of(Path(rewritten)) == before
    assert [row["service"] for row in dry_run_result] == ["compaction", "archive"]
    done = call("run_metadata_maintenance", path=rewritten, services=services)
    assert [row["outcome"] for row in done] == [row["outcome"] for row in dry_run_result]
    assert (done[0]["outcome"], done[1]["outcome"]) == ("done", "nothing_to_do")
    assert len(call("run_metadata_maintenance", path=rewritten)) == 4
    with pytest.raises(InvalidRequest, match="services"):
        call("run_metadata_maintenance", path=rewritten, services="compactoin")
    assert call_one("run_timeline_compaction", path=rewritten)["start_compaction_time"]


def test_sweeps_that_are_due_are_done(path: str) -> None:
    assert call_one("sweep", path=path)["instant"] is None
    plan = Table(path).compaction.schedule(cancellable=True)
    assert isinstance(plan, Plan)
    plan.cancel()
    late = Path(path, "p=a", f"late-0_0-0-1_{plan.instant}.parquet")
    late.touch()
    sweeps = Path(path, ".hoodie", ".lakewarden", "sweeps")
    for entry in sweeps.glob("*"):
        entry.unlink()
    schedule_sweep(context_of(path), plan.instant, ["p=a"])
    for entry in sweeps.glob("*"):
        entry.rename(entry.with_name(f"1.{entry.name.split('.', 1)[1]}"))
    before = contents_of(Path(path))
    assert call_one("sweep", path=path, dry_run=True)["deleted_files_count"] == 1
    assert contents_of(Path(path)) == before
    row = call_one("sweep", path=path)
    assert (row["instant"], row["deleted_files_count"]) == (plan.instant, 1)
    assert not late.exists()


def abandoned(path: str, *, cancellable: bool) -> str:
    """A compaction whose attempt has died."""
    plan = Table(path).compaction.schedule(cancellable=cancellable)
    assert isinstance(plan, Plan)
    attempt = start(context_of(path), plan.instant).attempt
    assert attempt is not None
    attempt.stop()
    return plan.instant


def test_a_plan_that_was_begun_and_left_waits_again(path: str) -> None:
    instant = abandoned(path, cancellable=False)
    assert call_one("show_inflight_commits", path)["state"] == "INFLIGHT"
    before = contents_of(Path(path))
    name = "run_rollback_inflight_tableservice"
    dry_run_result = call_one(name, path=path, pending_instant=instant, dry_run=True)
    assert contents_of(Path(path)) == before
    done = call_one(name, path=path, pending_instant=instant)
    assert done["outcome"] == dry_run_result["outcome"] == "requested_again"
    assert call_one("show_inflight_commits", path)["state"] == "REQUESTED"
    assert call_one(name, path, None, instant)["outcome"] == "not_begun"
    assert call_one("run_compaction", path=path, instants=instant)["state"] == "COMPLETED"
    with pytest.raises(InvalidRequest, match="no pending plan"):
        call(name, path, None, instant)


def test_with_its_request_a_plan_goes_as_a_whole(path: str) -> None:
    instant = abandoned(path, cancellable=False)
    name = "run_rollback_inflight_tableservice"
    plan_request = {"pending_instant": instant, "delete_request_instant_file": True}
    assert call_one(name, path=path, **plan_request)["outcome"] == "cancelled"
    assert call("show_inflight_commits", path) == []
    assert call_one("run_compaction", path=path)["operation_size"] == 2


def test_what_somebody_works_on_is_not_taken_back(path: str) -> None:
    plan = Table(path).compaction.schedule(cancellable=False)
    assert isinstance(plan, Plan)
    attempt = start(context_of(path), plan.instant).attempt
    assert attempt is not None
    with attempt:
        assert call_one("show_inflight_commits", path)["held_by"] is not None
        with pytest.raises(Conflict) as refused:
            call("run_rollback_inflight_tableservice", path, None, plan.instant, True)
        assert refused.value.code == "plan_held"
        row = call_one("cleanup_stale_inflight_commits", path, 0, True)
        assert (row["instant_time"], row["rollback_status"]) == (None, None)


@pytest.mark.parametrize("cancellable", [True, False])
def test_stale_plans_are_taken_back(path: str, *, cancellable: bool) -> None:
    instant = abandoned(path, cancellable=cancellable)
    assert call_one("cleanup_stale_inflight_commits", path)["instant_time"] is None
    assert call("show_inflight_commits", path, 180) == []
    before = contents_of(Path(path))
    dry_run_result = call_one("cleanup_stale_inflight_commits", path, 0, dry_run=True)
    assert contents_of(Path(path)) == before
    assert (dry_run_result["instant_time"], dry_run_result["rollback_status"]) == (instant, None)
    done = call_one("cleanup_stale_inflight_commits", path, 0)
    assert (done["instant_time"], done["action"], done["rollback_status"]) == (
        instant,
        "compaction",
        True,
    )
    assert [row["state"] for row in call("show_inflight_commits", path)] == (
        [] if cancellable else ["REQUESTED"]
    )


def test_stale_writes_are_taken_back_only_if_asked_for(path: str) -> None:
    timeline = Path(path, ".hoodie", "timeline")
    write = f"{datetime.now(UTC) - timedelta(hours=9):%Y%m%d%H%M%S}000"
    for state in ("requested", "inflight"):
        (timeline / f"{write}.deltacommit.{state}").touch()
    assert call_one("cleanup_stale_inflight_commits", path)["instant_time"] is None
    done = call_one("cleanup_stale_inflight_commits", path, include_ingestion_commits=True)
    assert (done["instant_time"], done["rollback_status"]) == (write, True)
    assert call("show_inflight_commits", path) == []
    assert Table(path).read_arrow().num_rows == 6


def test_partitions_are_dropped_by_their_paths(path: str) -> None:
    before = contents_of(Path(path))
    dry_run_result = call_one("drop_partition", path, "p=a", dry_run=True)
    assert contents_of(Path(path)) == before
    done = call_one("drop_partition", path, " p=a ,p=nowhere")
    for column in ("dropped_partitions", "file_groups_count", "bytes"):
        assert done[column] == dry_run_result[column]
    assert done["dropped_partitions"] == "p=a"
    assert set(Table(path).read_arrow()["p"].to_pylist()) == {"b"}
    again = call_one("drop_partition", path, "p=a")
    assert (again["instant"], again["result"]) == (None, "There are no rows in p=a.")
    with pytest.raises(InvalidRequest, match="not a partition path"):
        call("drop_partition", path, "a")
    with pytest.raises(InvalidRequest, match="partition"):
        call("drop_partition", path)


@pytest.mark.parametrize("is_flat", [True, False])
def test_a_table_is_truncated_as_a_whole(tmp_path: Path, *, is_flat: bool) -> None:
    path = str(tmp_path / "table")
    table = (FLAT_MOR if is_flat else MOR).create(path)
    carry_out(table, inserted())
    then = table.timeline().completed()[-1].requested
    before = contents_of(Path(path))
    dry_run_result = call_one("truncate_table", path, dry_run=True)
    assert contents_of(Path(path)) == before
    done = call_one("truncate_table", path)
    assert done["bytes"] == dry_run_result["bytes"] > 0
    assert done["truncated_partitions_count"] == (1 if is_flat else 2)
    assert table.read_arrow().num_rows == 0
    assert table.read_arrow(as_of=then).num_rows == 6
    assert call_one("truncate_table", path)["result"] == "There is nothing to delete."
    carry_out(table, inserted())
    assert table.read_arrow().num_rows == 6


def test_single_partitions_are_truncated(path: str) -> None:
    assert call_one("truncate_table", path, "p=b")["truncated_partitions_count"] == 1
    assert set(Table(path).read_arrow()["p"].to_pylist()) == {"a"}


def test_a_table_without_partitions_never_expires(tmp_path: Path) -> None:
    path, then = str(tmp_path / "table"), datetime.now(UTC) - timedelta(days=40)
    old = ports(ManualClock(round(then.timestamp() * 1000)), 1)
    carry_out(FLAT_MOR.create(path, ports=old), inserted())
    assert call_one("run_ttl", path, retain_days=1)["deleted_partitions"] is None
    assert Table(path).read_arrow().num_rows == 6


def test_partitions_expire_by_their_last_write(tmp_path: Path) -> None:
    path, then = str(tmp_path / "table"), datetime.now(UTC) - timedelta(days=40)
    old = ports(ManualClock(round(then.timestamp() * 1000)), 1)
    carry_out(MOR.create(path, ports=old), inserted())
    carry_out(Table(path), updated(count=1, ts=5, partitions="a"))
    before = contents_of(Path(path))
    assert call_one("run_ttl", path, retain_days=50)["deleted_partitions"] is None
    dry_run_result = call_one("run_ttl", path, retain_days=30, dry_run=True)
    assert contents_of(Path(path)) == before
    done = call_one("run_ttl", path, "keep_by_time", 30)
    assert done["deleted_partitions"] == dry_run_result["deleted_partitions"] == "p=b"
    assert done["last_written_at"] < datetime.now(UTC) - timedelta(days=39)
    assert set(Table(path).read_arrow()["p"].to_pylist()) == {"a"}
    for wrong in ({}, {"ttl_policy": "KEEP_BY_CREATION_TIME", "retain_days": 3}):
        with pytest.raises(InvalidRequest):
            call("run_ttl", path, **wrong)
