"""Instants leave the table as JSON files, and nothing that is there already is lost."""

import json
from pathlib import Path

import pytest

from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.procedures.declaring.caller import PlainCaller
from lakewarden.procedures.declaring.permissions import Permissions
from tests.golden_tables import GoldenTable
from tests.procedures.calls import call

ARCHIVED = "mor_archived_lsm_levels"


def test_active_and_archived_instants_are_written(golden: GoldenTable, tmp_path: Path) -> None:
    path = str(golden(ARCHIVED))
    rows = call("export_instants", path=path, local_folder=str(tmp_path), actions="clean, commit")
    names = sorted(file.name for file in tmp_path.iterdir())
    assert len(rows) == len(names)
    assert {name.split(".")[1] for name in names} == {"clean", "commit"}
    shown = call("show_cleans", path=path, showArchived=True, limit=100)
    for row in shown:
        exported = json.loads((tmp_path / f"{row['clean_time']}.clean.json").read_bytes())
        assert exported["totalFilesDeleted"] == row["total_files_deleted"]
    # Once more changes nothing.
    call("export_instants", path=path, local_folder=str(tmp_path), actions="clean,commit")
    assert sorted(file.name for file in tmp_path.iterdir()) == names


def test_the_oldest_come_first_unless_the_newest_are_wanted(
    golden: GoldenTable, tmp_path: Path
) -> None:
    path, target = str(golden(ARCHIVED)), str(tmp_path / "export")
    oldest = call("export_instants", path=path, local_folder=target, limit=1, dry_run=True)
    newest = call(
        "export_instants", path=path, local_folder=target, limit=1, desc=True, dry_run=True
    )
    assert "20261118130211284" in str(oldest[0]["export_detail"])
    assert "20261118130500963" in str(newest[0]["export_detail"])
    assert not Path(target).exists()


def test_a_file_that_is_there_is_never_replaced(golden: GoldenTable, tmp_path: Path) -> None:
    file = tmp_path / "20261118130211284.deltacommit.json"
    file.write_text("mine")
    with pytest.raises(Conflict, match="never replaces"):
        call("export_instants", path=str(golden(ARCHIVED)), local_folder=str(tmp_path))
    assert file.read_text() == "mine"


def test_a_folder_outside_of_the_allowed_roots_is_refused(
    golden: GoldenTable, tmp_path: Path
) -> None:
    path = golden(ARCHIVED)
    caller = PlainCaller(permissions=Permissions(allowed_roots=(str(path),)))
    with pytest.raises(InvalidRequest, match="may not use"):
        call("export_instants", path=str(path), local_folder=str(tmp_path), caller=caller)
    with pytest.raises(InvalidRequest, match="actions => 'compact'"):
        call("export_instants", path=str(path), local_folder=str(tmp_path), actions="compact")
