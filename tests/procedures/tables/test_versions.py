"""`upgrade_table`, `downgrade_table`: the version of a table's format, by Hudi's words."""

from pathlib import Path

import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import InvalidRequest
from tests.procedures.calls import call, call_one, contents_of


def test_a_table_gets_the_version_that_is_named(path: str) -> None:
    rows = Table(path).read_arrow().num_rows
    before = contents_of(Path(path))
    for said in ("NINE", "nine", "9"):
        assert call_one("upgrade_table", path=path, to_version=said) == {"result": True}
    dry = call_one("downgrade_table", path=path, to_version="EIGHT", dry_run=True)
    assert dry == {"result": False}
    for wrong, message in (("SEVEN", "stays at version 9"), ("LATEST", "to_version")):
        with pytest.raises(InvalidRequest, match=message):
            call("downgrade_table", path=path, to_version=wrong)
    assert contents_of(Path(path)) == before
    assert call_one("downgrade_table", path=path, to_version="EIGHT") == {"result": True}
    assert Table(path).config.version == 8
    assert call_one("upgrade_table", path=path, to_version="NINE") == {"result": True}
    assert Table(path).config.version == 9
    assert Table(path).read_arrow().num_rows == rows
