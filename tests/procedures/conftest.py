"""Tables for tests of procedures."""

import shutil
from pathlib import Path

import pytest

from tests.engine.services.service_table import MOR, inserted, updated
from tests.writing.shapes import carry_out


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A merge-on-read table with logs in two partitions, to be copied only."""
    path = tmp_path_factory.mktemp("made") / "table"
    table = MOR.create(str(path))
    for write in (inserted(), updated(ts=2)):
        carry_out(table, write)
    return path


@pytest.fixture
def path(made: Path, tmp_path: Path) -> str:
    """A table of the test's own, at a path that SQL has to quote."""
    return str(shutil.copytree(made, tmp_path / "it's a table"))
