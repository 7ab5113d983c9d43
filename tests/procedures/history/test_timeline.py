"""The timeline as a procedure shows it, on tables that Java wrote."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.timeline.archived.reader import LsmArchive
from lakewarden.table import Table
from tests.golden_tables import GoldenDocument, GoldenTable
from tests.procedures.calls import Rows, call

ARCHIVED = "mor_archived_lsm_levels"


def shown(rows: Rows) -> list[tuple[object, ...]]:
    return [(row["instant_time"], row["action"], row["state"]) for row in rows]


@pytest.mark.parametrize("name", [ARCHIVED, "v6_cow_archived"])
def test_every_instant_that_java_sees_is_shown(
    name: str, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    timeline = golden_document(name)["timeline"]
    expected = {
        (one["requested"], one["action"], one["state"])
        for one in (*timeline["active"], *timeline["archived"])
        if one["state"] == "COMPLETED"
    }
    rows = call("show_timeline", path=str(golden(name)), limit=1000, showArchived=True)
    assert set(shown(rows)) == expected
    assert shown(rows) == sorted(shown(rows), reverse=True)
    active = {row["instant_time"] for row in rows if row["timeline_type"] == "ACTIVE"}
    assert active == {one["requested"] for one in timeline["active"]}


def test_times_have_a_year_and_a_zone(golden: GoldenTable) -> None:
    (row,) = call("show_timeline", path=str(golden(ARCHIVED)), limit=1)
    assert row["instant_time"] == "20261118130500963"
    assert row["requested_time"] == datetime(2026, 11, 18, 13, 5, 0, 963000, UTC)
    assert row["completed_time"] == datetime(2026, 11, 18, 13, 5, 3, 202000, UTC)


def test_the_filter_comes_before_the_limit(golden: GoldenTable) -> None:
    rows = call(
        "show_timeline",
        path=str(golden(ARCHIVED)),
        limit=2,
        show_archived=True,
        filter="timeline_type = 'ARCHIVED' and action = 'commit'",
    )
    assert len(rows) == 2
    assert {row["action"] for row in rows} == {"commit"}


def test_a_range_with_two_ends_is_shown_whole(golden: GoldenTable) -> None:
    path = str(golden(ARCHIVED))
    ends = {"startTime": "20261118130446076", "endTime": "20261118130500038"}
    expected = ["20261118130500038", "20261118130455824", "20261118130454269", "20261118130446076"]
    rows = call("show_timeline", path=path, limit=1, **ends)
    assert [row["instant_time"] for row in rows] == expected
    rows = call("show_timeline", path=path, limit=1, startTime=ends["startTime"])
    assert len(rows) == 1


def test_ends_of_a_range_may_be_days_or_times(golden: GoldenTable) -> None:
    path = str(golden(ARCHIVED))
    every = call("show_timeline", path=path, limit=1000)
    for ends in (("20261118", "20261118"), ("2026-11-18", "2026-11-18")):
        assert call("show_timeline", path=path, startTime=ends[0], endTime=ends[1]) == every
    rows = call("show_timeline", path=path, endTime="2026-11-18 13:04:50", startTime="2026-11-18")
    assert rows[0]["instant_time"] == "20261118130446076"
    assert call("show_timeline", path=path, endTime="2026-11-17") == []
    with pytest.raises(InvalidRequest, match="'yesterday' is not a time"):
        call("show_timeline", path=path, startTime="yesterday")


def test_of_a_range_only_its_part_of_the_archive_is_read(golden_copy: GoldenTable) -> None:
    path = golden_copy(ARCHIVED)
    archive = LsmArchive(open_storage(Location(str(path))), ".hoodie/timeline/history")
    oldest = min(archive.snapshot.files, key=lambda file: file.last)
    since = Table(str(path)).timeline().instants[0].requested
    (path / ".hoodie" / "timeline" / "history" / oldest.name).write_bytes(b"unreadable")
    rows = call("show_timeline", path=str(path), showArchived=True, startTime=since)
    assert rows
    with pytest.raises(CorruptTable, match=oldest.name):
        call("show_timeline", path=str(path), showArchived=True)


def test_rollbacks_say_what_they_undo(golden: GoldenTable) -> None:
    rows = call("show_timeline", path=str(golden("mor_rollback_of_failed_write")))
    said = {row["action"]: row["rollback_info"] for row in rows if row["rollback_info"]}
    assert said == {"rollback": "Rolled back 20261118130226212"}


def test_an_unreadable_rollback_says_so(golden_copy: GoldenTable) -> None:
    path: Path = golden_copy("mor_rollback_of_failed_write")
    (file,) = (path / ".hoodie" / "timeline").glob("*_*.rollback")
    file.write_bytes(b"Obj\x01 and nothing more")
    rows = call("show_timeline", path=str(path), filter="action = 'rollback'")
    assert str(rows[0]["rollback_info"]).startswith("Unreadable")
