"""Tables for tests of procedures."""

from pathlib import Path

import pytest

from tests.engine.services.worlds import MOR, inserted, updated
from tests.writing.shapes import carry_out


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A merge-on-read table with logs in two partitions, at a path that SQL has to quote."""
    path = str(tmp_path / "it's a table")
    table = MOR.create(path)
    for write in (inserted(), updated(ts=2)):
        carry_out(table, write)
    return path
