"""Creating a table: what is there before anybody has written to it."""

from pathlib import Path

import pyarrow as pa

from lakewarden import Table


def test_an_empty_table_has_the_folders_that_java_lists(tmp_path: Path) -> None:
    Table.create(str(tmp_path), pa.schema([("id", pa.string())]), key=["id"])
    assert (tmp_path / ".hoodie" / "timeline" / "history").is_dir()


def test_what_keeps_the_folder_is_no_instant(tmp_path: Path) -> None:
    table = Table.create(str(tmp_path), pa.schema([("id", pa.string())]), key=["id"])
    assert table.timeline().instants == ()
    table.upsert(pa.table({"id": ["a"]}))
    assert len(table.timeline().instants) == 1
