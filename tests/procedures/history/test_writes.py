"""Writes as procedures show them, in figures, by partition and by file group."""

from typing import Any

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES
from lakewarden.table import Table
from tests.golden_tables import GoldenTable
from tests.procedures.calls import call, call_one

ARCHIVED = "mor_archived_lsm_levels"


def newest(path: str) -> str:
    return Table(path).timeline().completed()[-1].requested


def test_a_write_in_figures(path: str) -> None:
    second, first = call("show_commits", path=path)
    assert (first["action"], second["action"]) == ("deltacommit", "deltacommit")
    assert (first["total_files_added"], first["total_files_updated"]) == (2, 0)
    assert (second["total_files_added"], second["total_files_updated"]) == (0, 2)
    assert (first["total_records_written"], second["total_update_records_written"]) == (6, 6)
    assert first["total_partitions_written"] == 2


def test_the_same_figures_by_file_group_by_partition_and_in_all(path: str) -> None:
    instant = newest(path)
    named: dict[str, Any] = {"path": path, "instant_time": instant}
    (whole,) = call("show_commits", path=path, limit=1)
    files = call("show_commit_files", **named)
    partitions = call("show_commit_partitions", **named)
    in_all = call_one("show_commit_write_stats", **named)
    stats = call("show_commits_metadata", path=path, filter=f"commit_time = '{instant}'")
    for rows in (files, partitions, [in_all], stats):
        assert sum(row["total_bytes_written"] for row in rows) == whole["total_bytes_written"]
    assert [row["partition_path"] for row in partitions] == ["p=a", "p=b"]
    assert [row["file_id"] for row in files] == [row["file_id"] for row in stats]
    written, count = whole["total_bytes_written"], whole["total_records_written"]
    assert in_all["avg_record_size"] == -(-written // count)


def test_archived_writes_are_shown_by_range(golden: GoldenTable) -> None:
    path = str(golden(ARCHIVED))
    rows = call("show_archived_commits", path=path, limit=100)
    times = [row["commit_time"] for row in rows]
    assert times == sorted(times, reverse=True)
    assert not set(times) & {row["commit_time"] for row in call("show_commits", path=path)}
    ends = {"start_ts": times[3], "end_ts": times[1]}
    assert call("show_archived_commits", path=path, **ends) == rows[1:4]
    stats = call("show_archived_commits_metadata", path=path, limit=100, **ends)
    assert sorted({row["commit_time"] for row in stats}, reverse=True) == times[1:4]
    assert sum(row["num_writes"] for row in stats) == sum(
        row["total_records_written"] for row in rows[1:4]
    )


def test_a_write_in_archive_and_timeline_counts_as_active(golden_copy: GoldenTable) -> None:
    """So it is where an archiver has died after it had written, and before it deleted."""
    path = golden_copy(ARCHIVED)
    archived = call("show_archived_commits", path=str(path), limit=100)
    time = archived[0]["commit_time"]
    timeline = Table(str(path)).state().timeline
    (row,) = (one for one in timeline.archive.rows(COMPLETED_WRITES, time, time))
    name = f"{time}_{row.instant.completed}.{row.instant.action.value}"
    (path / ".hoodie" / "timeline" / name).write_bytes(row.metadata or b"")
    assert call("show_archived_commits", path=str(path), limit=100) == archived[1:]
    assert time in {row["commit_time"] for row in call("show_commits", path=str(path), limit=100)}
    shown = call("show_timeline", path=str(path), showArchived=True, limit=100)
    assert [row["timeline_type"] for row in shown if row["instant_time"] == time] == ["ACTIVE"]


def test_an_archived_write_is_found_by_its_instant(golden: GoldenTable) -> None:
    path = str(golden(ARCHIVED))
    (oldest,) = call("show_archived_commits", path=path, limit=100)[-1:]
    rows = call("show_commit_files", path=path, instant_time=oldest["commit_time"])
    assert sum(row["total_records_written"] for row in rows) == oldest["total_records_written"]


def test_replacements_are_writes(golden: GoldenTable) -> None:
    path = str(golden("cow_overwrite_and_delete_partition"))
    actions = {row["action"] for row in call("show_commits", path=path)}
    assert actions == {"commit", "replacecommit"}


@pytest.mark.parametrize(
    "name",
    [
        "show_commit_files",
        "show_commit_partitions",
        "show_commit_write_stats",
        "show_rollback_detail",
        "show_commit_extra_metadata",
    ],
)
def test_an_instant_that_is_not_there_is_refused(name: str, path: str) -> None:
    with pytest.raises(InvalidRequest, match="no completed instant 20200101000000000"):
        call(name, path=path, instant_time="20200101000000000")


def test_what_writers_note_is_shown_by_key(path: str) -> None:
    rows = call("show_commit_extra_metadata", path=path, metadata_key="schema")
    assert [row["metadata_key"] for row in rows] == ["schema", "schema"]
    assert '"record"' in str(rows[0]["metadata_value"])
    assert call("show_commit_extra_metadata", path=path, metadata_key="none") == []


def test_a_copy_that_is_behind_is_told_what_it_lacks(
    path: str, golden: GoldenTable, golden_copy: GoldenTable
) -> None:
    same = golden_copy(ARCHIVED)
    row = call_one("commits_compare", table=str(golden(ARCHIVED)), path=str(same))
    assert "ahead by 0 commits" in str(row["compare_detail"])
    for file in (same / ".hoodie" / "timeline").glob("20261118130500963*"):
        file.unlink()
    ahead = call_one("commits_compare", table=str(golden(ARCHIVED)), path=str(same))
    assert "ahead by 1 commits. Commits to catch up - [20261118130500963]" in str(ahead)
    behind = call_one("commits_compare", table=str(same), path=str(golden(ARCHIVED)))
    assert "behind by 1 commits" in str(behind["compare_detail"])
