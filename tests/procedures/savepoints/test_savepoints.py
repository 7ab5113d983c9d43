"""Savepoints and ways back: what is kept, what is undone, and what stands in the way."""

from pathlib import Path

import pytest

from lakewarden import Conflict, InvalidRequest, Table
from lakewarden.table_service_handle import Plan
from tests.engine.services.service_table import updated
from tests.procedures.calls import Rows, call, call_one, contents_of
from tests.writing.shapes import carry_out

UNKNOWN = "20200101000000000"


def writes(path: str) -> list[str]:
    return [one.requested for one in Table(path).timeline().completed()]


def rows(path: str) -> object:
    return Table(path).read_arrow(["id", "v"]).sort_by("id")


def without(found: Rows, *columns: str) -> Rows:
    return [{name: row[name] for name in row if name not in columns} for row in found]


def test_a_savepoint_is_made_shown_and_deleted(path: str) -> None:
    before = contents_of(Path(path))
    dry_run_result = call_one("create_savepoint", path, dry_run=True)
    assert contents_of(Path(path)) == before
    done = call_one("create_savepoint", path, "", "ann", "before the backfill")
    assert done == dry_run_result
    assert done["create_savepoint_result"] is True
    assert done["savepoint_time"] == writes(path)[-1]
    again = call_one("create_savepoint", path, commit_time=done["savepoint_time"])
    assert again["message"] == "It already existed."
    shown = call_one("show_savepoints", path)
    assert (shown["user"], shown["comments"]) == ("ann", "before the backfill")
    assert shown["saved_at"].tzinfo is not None
    before = contents_of(Path(path))
    dry_run_result = call_one("delete_savepoint", path, dry_run=True)
    assert contents_of(Path(path)) == before
    assert call_one("delete_savepoint", path) == dry_run_result
    assert call("show_savepoints", path) == []
    with pytest.raises(InvalidRequest, match="no savepoint"):
        call("delete_savepoint", path)


def test_several_savepoints_go_at_once_and_one_that_is_not_there_is_a_row(path: str) -> None:
    first, second = writes(path)
    for write in (first, second):
        call("create_savepoint", path, write)
    assert [row["savepoint_time"] for row in call("show_savepoints", path)] == [second, first]
    gone, failed = call("delete_savepoint", path, f"{first}, {UNKNOWN}")
    assert (gone["delete_savepoint_result"], failed["delete_savepoint_result"]) == (True, False)
    assert "no savepoint" in str(failed["message"])
    with pytest.raises(InvalidRequest, match="no savepoint"):
        call("delete_savepoint", path, f"{first},{UNKNOWN}")
    for instant in (UNKNOWN, "no number"):
        with pytest.raises(InvalidRequest):
            call("create_savepoint", path, instant)


@pytest.mark.parametrize("name", ["rollback_to_savepoint", "restore_to_instant"])
def test_a_table_is_taken_back_and_all_that_came_later_is_undone(path: str, name: str) -> None:
    then, saved = rows(path), writes(path)[-1]
    call("create_savepoint", path)
    for ts in (5, 6):
        carry_out(Table(path), updated(ts=ts))
    later = writes(path)[-2:]
    before = contents_of(Path(path))
    dry_run_result = call_one(name, path, saved, dry_run=True)
    assert contents_of(Path(path)) == before
    done = call_one(name, path, saved)
    unknown = ("restore_instant", "message")
    assert without([done], *unknown) == without([dry_run_result], *unknown)
    assert (done["restored_to"], done["undone_instants_count"]) == (saved, 2)
    assert done["deleted_files_count"] > 0
    assert all(instant in str(done["message"]) for instant in later)
    assert rows(path) == then
    again = call_one(name, path, saved)
    assert (again["restore_instant"], again["undone_instants_count"]) == (None, 0)
    assert "nothing to undo" in str(again["message"])


def test_the_newest_savepoint_is_meant_where_none_is_named(path: str) -> None:
    with pytest.raises(InvalidRequest, match="no savepoint"):
        call("rollback_to_savepoint", path)
    call("create_savepoint", path, writes(path)[0])
    row = call_one("rollback_to_savepoint", path)
    assert row["restored_to"] == writes(path)[-1]
    assert len(writes(path)) == 1


def test_what_is_no_savepoint_is_gone_back_to_only_by_the_other_name(path: str) -> None:
    first = writes(path)[0]
    (row,) = call("rollback_to_savepoint", path, first, dry_run=True)
    assert next(iter(row.values())) is False
    assert "no savepoint" in str(row["message"])
    with pytest.raises(InvalidRequest, match="no savepoint"):
        call("rollback_to_savepoint", path, first)
    assert call_one("restore_to_instant", path, first)["restored_to"] == first
    with pytest.raises(InvalidRequest):
        call("restore_to_instant", path, UNKNOWN)


def test_each_obstacle_is_a_row_of_a_dry_run(path: str) -> None:
    first, second = writes(path)
    call("create_savepoint", path, second)
    before = contents_of(Path(path))
    found = call("restore_to_instant", path, first, dry_run=True)
    assert [row["restore_result"] for row in found] == [False]
    assert second in str(found[0]["message"])
    with pytest.raises(InvalidRequest):
        call("restore_to_instant", path, first)
    assert contents_of(Path(path)) == before


def test_the_newest_write_is_taken_back(path: str) -> None:
    newest, before = writes(path)[-1], contents_of(Path(path))
    dry_run_result = call_one("rollback_to_instant", path, newest, dry_run=True)
    assert contents_of(Path(path)) == before
    done = call_one("rollback_to_instant", path, newest)
    assert done["rollback_result"] is True
    assert without([done], "rollback_instant") == without([dry_run_result], "rollback_instant")
    assert done["deleted_files_count"] == 2
    assert writes(path) == [one for one in writes(path) if one != newest]
    assert call_one("rollback_to_instant", path, newest)["message"].startswith("Another process")


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_later_writes_build_upon_is_not_taken_back(path: str, *, dry_run: bool) -> None:
    before = contents_of(Path(path))
    for instant in (writes(path)[0], UNKNOWN):
        with pytest.raises(InvalidRequest):
            call("rollback_to_instant", path, instant, dry_run=dry_run)
    assert contents_of(Path(path)) == before


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_pending_plan_is_taken_back_if_it_may_be_cancelled(path: str, *, dry_run: bool) -> None:
    fixed = Table(path).compaction.schedule(cancellable=False, max_file_groups=1)
    plan = Table(path).compaction.schedule(cancellable=True)
    assert isinstance(plan, Plan)
    assert isinstance(fixed, Plan)
    row = call_one("rollback_to_instant", path, plan.instant, dry_run=dry_run)
    assert (row["action"], row["rollback_instant"] is None) == ("compaction", dry_run)
    with pytest.raises((InvalidRequest, Conflict)) as refused:
        call("rollback_to_instant", path, fixed.instant, dry_run=dry_run)
    assert refused.value.code == "not_cancellable"


def marked(path: str, instant: str) -> Path:
    folder = Path(path, ".hoodie", ".temp", instant, "p=a")
    folder.mkdir(parents=True)
    (folder / f"f-0_0-0-1_{instant}.parquet.marker.CREATE").touch()
    return folder


def test_markers_of_ended_instants_are_removed(path: str) -> None:
    ended = writes(path)[0]
    folder = marked(path, ended)
    before = contents_of(Path(path))
    dry_run_result = call_one("delete_marker", path, ended, dry_run=True)
    assert contents_of(Path(path)) == before
    assert call_one("delete_marker", path, ended) == dry_run_result
    assert (dry_run_result["delete_marker_result"], dry_run_result["deleted_markers_count"]) == (
        True,
        1,
    )
    assert not folder.exists()
    assert call_one("delete_marker", path, ended)["message"] == "It has no markers."


def test_markers_of_pending_instants_stay(path: str) -> None:
    plan = Table(path).compaction.schedule()
    assert isinstance(plan, Plan)
    folder, ended = marked(path, plan.instant), marked(path, writes(path)[0])
    done, kept = call("delete_marker", path, f"{writes(path)[0]},{plan.instant}")
    assert (done["delete_marker_result"], kept["delete_marker_result"]) == (True, False)
    assert "its rollback would need them" in str(kept["message"])
    assert folder.exists()
    assert not ended.exists()
    for wrong in (plan.instant, "../timeline", ""):
        with pytest.raises(InvalidRequest):
            call("delete_marker", path, wrong)
