"""The walk of a call is the same each time, and starts where a caller does."""

from pathlib import Path

import pytest

from scripts.walk import CHECKOUT, WALKS, walk


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_names_files_of_ours_and_counts_them(name: str, tmp_path: Path) -> None:
    found = walk(name, tmp_path)
    *tree, last = found.lines()
    files = [line.split(":")[0].strip() for line in tree]
    assert len(set(files)) == len(files)
    assert last.startswith(f"{len(files)} files, ")
    for file in files:
        assert (CHECKOUT / file).is_file() or (CHECKOUT / "lakewarden" / file).is_file()


def test_a_read_starts_at_the_table(tmp_path: Path) -> None:
    first = next(walk("read", tmp_path).lines())
    assert first.startswith("table.py: Table.__init__, ")
