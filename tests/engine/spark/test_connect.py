"""Spark Connect: a client without a JVM reads and writes the same rows."""

from pathlib import Path

import pytest

from tests.engine.spark import connect_reads, connect_writes
from tests.golden_tables import GoldenTable
from tests.small_session import printed

pytestmark = pytest.mark.xdist_group("spark")

NAMES = ("cow_all_types", "mor_all_types", "cow_partition_url_encoded", "mor_partial_updates")


def test_a_remote_session_gives_the_rows_that_arrow_gives(
    golden: GoldenTable, tmp_path: Path
) -> None:
    paths = [str(golden(name)) for name in NAMES]
    assert printed(connect_reads.__file__, paths, tmp_path) == ""


def test_frames_of_a_remote_session_are_written(tmp_path: Path) -> None:
    expected = [(str(number), 5) for number in range(5)]
    assert printed(connect_writes.__file__, [str(tmp_path / "t")], tmp_path) == str(expected)
