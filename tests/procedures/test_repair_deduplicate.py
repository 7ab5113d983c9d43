"""`repair_deduplicate`: it tells first, and mends when asked to."""

from pathlib import Path

import pytest

from lakewarden import Table
from tests.procedures.calling import call
from tests.writing.shapes import Shape


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table with one key twice in each of two partitions."""
    made = Shape("cow").create(str(tmp_path / "t"))
    for ts in (1, 2):
        rows = [{"id": "k", "p": place, "ts": ts, "v": 1.0, "name": "n"} for place in "ab"]
        made.insert(rows, small_file_limit=0)
    return tmp_path / "t"


def test_by_default_it_tells_the_copies_and_changes_nothing(table: Path) -> None:
    rows = call("repair_deduplicate", table)
    assert [(row["key"], row["partition"], row["stays"]) for row in rows] == [
        ("k", "p=a", False),
        ("k", "p=a", True),
        ("k", "p=b", False),
        ("k", "p=b", True),
    ]
    assert {row["reason"] for row in rows if row["stays"]} == {"It has the newest ordering values."}
    assert {row["instant"] for row in rows} == {None}
    assert len(Table(str(table)).read_arrow()) == 4


def test_it_mends_the_partitions_that_are_named(table: Path) -> None:
    rows = call("repair_deduplicate", table, duplicated_partition_path="p=b", dry_run=False)
    assert {row["partition"] for row in rows} == {"p=b"}
    assert {row["instant"] for row in rows} == {
        Table(str(table)).timeline().completed()[-1].requested
    }
    found = Table(str(table)).read_arrow(["p", "ts"]).to_pylist()
    assert sorted((row["p"], row["ts"]) for row in found) == [("a", 1), ("a", 2), ("b", 2)]


def test_where_no_key_repeats_there_is_nothing_to_tell(table: Path) -> None:
    call("repair_deduplicate", table, dry_run=False)
    commits = Table(str(table)).timeline().completed()
    assert call("repair_deduplicate", table, dry_run=False) == []
    assert Table(str(table)).timeline().completed() == commits
