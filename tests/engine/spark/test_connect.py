"""Spark Connect: a client without a JVM reads and writes the same rows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.spark import connect_reads, connect_writes
from tests.golden_tables import GoldenTable
from tests.small_session import printed
from tests.sql_server import running_server

pytestmark = pytest.mark.xdist_group("spark")

NAMES = ("cow_all_types", "mor_all_types", "cow_partition_url_encoded", "mor_partial_updates")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server on this machine."""
    with running_server() as ports:
        yield f"sc://127.0.0.1:{ports.connect}"


def test_a_remote_session_gives_the_rows_that_arrow_gives(
    server: str, golden: GoldenTable, tmp_path: Path
) -> None:
    paths = [str(golden(name)) for name in NAMES]
    assert printed(connect_reads.__file__, [server, *paths], tmp_path) == ""


def test_frames_of_a_remote_session_are_written(server: str, tmp_path: Path) -> None:
    expected = [(str(number), 5) for number in range(5)]
    said = printed(connect_writes.__file__, [server, str(tmp_path / "t")], tmp_path)
    assert said == str(expected)
