"""Sessions come and go in one JVM, and a CALL works in each that was enabled or set up."""

from pathlib import Path

import pytest

from tests.small_session import printed
from tests.sql_ext import sessions_one_after_another

pytestmark = pytest.mark.xdist_group("spark")


@pytest.mark.by_turns(1)
def test_sessions_one_after_another(orders: Path, tmp_path: Path) -> None:
    said = printed(sessions_one_after_another.__file__, [str(orders)], tmp_path).splitlines()
    assert said == ["LAKEWARDEN_NOT_CONNECTED", "[]", "[]", "[]"]
