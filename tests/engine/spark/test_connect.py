"""Spark Connect: a client without a JVM reads and writes the same rows."""

from pathlib import Path

import pytest

from tests.engine.spark import connect_reads, connect_writes
from tests.golden_tables import GoldenTable
from tests.small_session import printed
from tests.sql_server import Ports

pytestmark = pytest.mark.xdist_group("served")

NAMES = ("cow_all_types", "mor_all_types", "cow_partition_url_encoded", "mor_partial_updates")


@pytest.fixture
def address(server: Ports) -> str:
    return f"sc://127.0.0.1:{server.connect}"


def test_a_remote_session_gives_the_rows_that_arrow_gives(
    address: str, golden: GoldenTable, tmp_path: Path
) -> None:
    paths = [str(golden(name)) for name in NAMES]
    assert printed(connect_reads.__file__, [address, *paths], tmp_path) == ""


@pytest.mark.by_turns(0)
def test_frames_of_a_remote_session_are_written(address: str, tmp_path: Path) -> None:
    expected = [(str(number), 5) for number in range(5)]
    said = printed(connect_writes.__file__, [address, str(tmp_path / "t")], tmp_path)
    assert said == str(expected)
