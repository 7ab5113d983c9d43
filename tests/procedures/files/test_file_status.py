"""What has become of a file, and which files are broken."""

from pathlib import Path

import pytest

from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.timeline.archived.reader import LsmArchive
from lakewarden.procedures.declaring.caller import PlainCaller
from lakewarden.procedures.declaring.permissions import Permissions
from lakewarden.table import Table
from tests.golden_tables import GoldenTable
from tests.procedures.calls import call, call_one
from tests.procedures.history.removed_files import cleaned_files, restored_files, rolled_back_files


def test_a_file_that_is_there_is_told_with_its_write(path: str) -> None:
    row = call("show_fsview_all", path=path, limit=1)[0]
    file = Path(row["data_file"])
    status = call_one("show_file_status", path=path, partition=row["partition"], file=file.name)
    assert status == {
        "status": "exist",
        "action": "deltacommit",
        "instant": row["base_instant"],
        "timeline": "active",
        "full_path": str(file),
    }


def test_a_file_that_a_clean_has_removed(golden: GoldenTable) -> None:
    path = golden("mor_archived_lsm_levels")
    for instant, partition, name in cleaned_files(str(path)):
        status = call_one("show_file_status", path=str(path), partition=partition, file=name)
        assert (status["status"], status["action"]) == ("deleted", "clean")
        assert status["instant"] == instant
        is_active = bool(list((path / ".hoodie" / "timeline").glob(f"{instant}_*")))
        assert status["timeline"] == ("active" if is_active else "archived")


def test_a_file_that_a_rollback_has_removed(golden: GoldenTable) -> None:
    path = str(golden("cow_rollback_of_failed_write"))
    found = rolled_back_files(path)
    assert found
    for instant, partition, name in found:
        status = call_one("show_file_status", path=path, partition=partition, file=name)
        assert (status["action"], status["instant"]) == ("rollback", instant)


def test_a_file_that_a_restore_has_removed(golden: GoldenTable) -> None:
    path = str(golden("cow_restore"))
    found = restored_files(path)
    assert found
    for instant, partition, name in found:
        status = call_one("show_file_status", path=path, partition=partition, file=name)
        assert (status["action"], status["instant"]) == ("restore", instant)


def test_nobody_knows_a_file_that_never_was(path: str) -> None:
    assert call_one("show_file_status", path=path, partition="p=a", file="x.parquet") == {
        "status": "unknown",
        "action": None,
        "instant": None,
        "timeline": None,
        "full_path": None,
    }
    with pytest.raises(InvalidRequest, match="needs partition"):
        call("show_file_status", path=path, file="x.parquet")


def test_the_archive_is_read_from_the_write_of_a_file_on(golden_copy: GoldenTable) -> None:
    path = golden_copy("mor_archived_lsm_levels")
    archive = LsmArchive(open_storage(Location(str(path))), ".hoodie/timeline/history")
    oldest = min(archive.snapshot.files, key=lambda file: file.last)
    (path / ".hoodie" / "timeline" / "history" / oldest.name).write_bytes(b"unreadable")
    newest = Table(str(path)).timeline().instants[-1].requested
    name = f"0-0_0-0-0_{newest}.parquet"
    row = call_one("show_file_status", path=str(path), partition="a", file=name)
    assert row["status"] == "unknown"
    with pytest.raises(CorruptTable, match=oldest.name):
        call("show_file_status", path=str(path), partition="a", file="no_instant")


def test_broken_files_are_shown_with_what_is_wrong(golden_copy: GoldenTable) -> None:
    path = golden_copy("cow_clean_keep_latest_commits")
    assert call("show_invalid_parquet", path=str(path)) == []
    good = sorted(file for file in path.rglob("*.parquet") if ".hoodie" not in file.parts)
    good[0].write_bytes(b"")
    good[1].write_bytes(good[1].read_bytes()[:-10])
    rows = call("show_invalid_parquet", path=str(path))
    assert [row["path"] for row in rows] == [str(good[0]), str(good[1])]
    assert all("no readable Parquet file" in row["reason"] for row in rows)
    partition = str(good[0].parent.relative_to(path))
    some = call("show_invalid_parquet", path=str(path), partitions=partition, parallelism=1)
    assert str(good[0]) in {row["path"] for row in some}
    instant = good[0].stem.rpartition("_")[2]
    of_write = call("show_invalid_parquet", path=str(path), instants=instant)
    assert {row["path"].rpartition("_")[2] for row in of_write} == {f"{instant}.parquet"}
    foreign = good[0].with_name("1.parquet")
    foreign.write_bytes(b"")
    assert str(foreign) == call("show_invalid_parquet", path=str(path))[-1]["path"]
    with pytest.raises(InvalidRequest, match="does not delete files"):
        call("show_invalid_parquet", path=str(path), needDelete=True)
    assert good[0].exists()
    assert foreign.exists()


def test_files_that_only_lie_in_a_partition_are_deleted_where_that_is_asked_for(
    golden_copy: GoldenTable,
) -> None:
    path = golden_copy("cow_clean_keep_latest_commits")
    before = sorted(path.rglob("*.parquet"))
    partition = next(one for one in before if ".hoodie" not in one.parts).parent
    broken = [partition / name for name in ("1.parquet", "2.parquet")]
    for one in broken:
        one.write_bytes(b"")
    reader = PlainCaller(permissions=Permissions(is_read_only=True))
    with pytest.raises(InvalidRequest, match="read"):
        call("show_invalid_parquet", path=str(path), needDelete=True, caller=reader)
    rows = call("show_invalid_parquet", path=str(path), needDelete=True)
    assert [row["path"] for row in rows] == [str(one) for one in broken]
    assert sorted(path.rglob("*.parquet")) == before
    assert call("show_invalid_parquet", path=str(path), needDelete=True) == []
