"""`show_fs_path_detail`: what lies below a path, whatever it is."""

from pathlib import Path

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.declaring.caller import PlainCaller
from lakewarden.procedures.declaring.permissions import Permissions
from tests.procedures.calls import call, call_one


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files in two folders, and one beside them."""
    for name, size in (("a/x", 2048), ("a/b/y", 10), ("a/b/z", 10), ("w", 5)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"." * size)
    return tmp_path


def test_all_below_a_path_is_counted(folder: Path) -> None:
    row = call_one("show_fs_path_detail", str(folder))
    assert (row["path_num"], row["file_num"], row["storage_size"]) == (3, 4, 2073)
    assert row["storage_size(unit)"] == "2.02KB"
    assert row["space_consumed"] == 2073


def test_the_largest_thing_in_it_comes_first(folder: Path) -> None:
    rows = call("show_fs_path_detail", path=str(folder), is_sub=True)
    assert [(Path(row["storage_path"]).name, row["file_num"]) for row in rows] == [
        ("a", 3),
        ("w", 1),
    ]
    assert [row["path_num"] for row in rows] == [2, 0]
    by_files = call("show_fs_path_detail", str(folder / "a"), is_sub=True, sort=False, limit=1)
    assert [Path(row["storage_path"]).name for row in by_files] == ["b"]


def test_paths_outside_of_the_allowed_roots_are_refused(folder: Path) -> None:
    caller = PlainCaller(permissions=Permissions(allowed_roots=(str(folder / "a"),)))
    with pytest.raises(InvalidRequest) as refused:
        call("show_fs_path_detail", path=str(folder), caller=caller)
    assert refused.value.code == "path_not_allowed"
