"""`upgrade_table`, `downgrade_table`: the version that a table has, and no other."""

from pathlib import Path

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from tests.procedures.calls import call, call_one, contents_of


@pytest.mark.parametrize("name", ["upgrade_table", "downgrade_table"])
def test_a_table_keeps_its_version(path: str, name: str) -> None:
    before = contents_of(Path(path))
    for said in ("NINE", "nine", "9"):
        assert call_one(name, path=path, to_version=said) == {"result": True}
    with pytest.raises(InvalidRequest) as refused:
        call(name, path=path, to_version="EIGHT")
    assert refused.value.code == "unsupported_version_change"
    with pytest.raises(InvalidRequest, match="to_version"):
        call(name, path=path, to_version="LATEST")
    assert contents_of(Path(path)) == before
