"""`repair_clustering_plan`: what it tells, and that it changes nothing unless it is told to."""

from pathlib import Path

import pytest

from lakewarden import InvalidRequest, Table
from lakewarden.table_service_handle import Plan
from tests.engine.services.service_table import COW, rows
from tests.procedures.calls import call, call_one, contents_of
from tests.writing.model import Write
from tests.writing.shapes import carry_out


@pytest.fixture
def planned(tmp_path: Path) -> tuple[str, str]:
    """A table of three small files, and the instant of a plan for them."""
    path = str(tmp_path / "table")
    table = COW.create(path)
    for number in range(3):
        carry_out(table, Write("bulk_insert", rows([f"k{number}"])))
    plan = Table(path).clustering.schedule()
    assert isinstance(plan, Plan)
    return path, plan.instant


def damaged(path: str) -> str:
    """The name of a file that is no Parquet file any more."""
    slice_ = Table(path).file_slices()[0]
    assert slice_.base_file is not None
    (Path(path) / slice_.path(slice_.base_file)).write_bytes(b"rotten")
    return slice_.base_file.name


def test_it_only_tells_unless_it_is_told_to(planned: tuple[str, str]) -> None:
    path, instant = planned
    name = damaged(path)
    before = contents_of(Path(path))
    reported = call_one("repair_clustering_plan", path=path, instant=instant)
    assert contents_of(Path(path)) == before
    assert (reported["action"], reported["deleted"], reported["replaced_by"]) == (
        "WOULD_REMOVE_FROM_PLAN",
        False,
        None,
    )
    assert reported["path"].endswith(name)
    assert reported["reason"].startswith("NOT_PARQUET_FILE: ")
    done = call_one("repair_clustering_plan", path=path, instant=instant, dry_run=False)
    assert done["action"] == "REMOVED_FROM_PLAN"
    (plan,) = call("show_plans", path=path)
    assert (plan["instant"], plan["file_groups_count"]) == (done["replaced_by"], 2)


def test_files_can_be_named(planned: tuple[str, str]) -> None:
    path, instant = planned
    base = Table(path).file_slices()[0].base_file
    assert base is not None
    named = {"op": "delete", "invalid_parquet_files": f"{base.name}, stranger.parquet"}
    one, other = call("repair_clustering_plan", path=path, instant=instant, dry_run=False, **named)
    assert (one["action"], one["reason"]) == ("REMOVED_FROM_PLAN", "USER_REQUESTED")
    assert (other["action"], other["path"]) == ("NOT_FOUND_IN_PLAN", "stranger.parquet")


def test_nothing_to_do_is_a_row(planned: tuple[str, str]) -> None:
    path, instant = planned
    row = call_one("repair_clustering_plan", path=path, instant=instant, op="checkAndDelete")
    assert (row["action"], row["path"]) == ("NOTHING_TO_DO", None)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"need_delete": True}, "does not delete files"),
        ({"op": "delete"}, "needs invalid_parquet_files"),
        ({"op": "destroy"}, "is not known"),
    ],
)
def test_what_makes_no_sense_is_refused(
    planned: tuple[str, str], arguments: dict[str, object], word: str
) -> None:
    path, instant = planned
    with pytest.raises(InvalidRequest, match=word):
        call("repair_clustering_plan", path=path, instant=instant, **arguments)
