"""Spark Connect: a client without a JVM gets the same rows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakewarden.java_home import java_home
from tests.engine.spark import connect_reads
from tests.golden_tables import GoldenTable

pytestmark = pytest.mark.xdist_group("spark")

NAMES = ("cow_all_types", "mor_all_types", "cow_partition_url_encoded", "mor_partial_updates")


def test_a_remote_session_gives_the_rows_that_arrow_gives(
    golden: GoldenTable, tmp_path: Path
) -> None:
    environment = {
        **os.environ,
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1",
    }
    command = [sys.executable, str(connect_reads.__file__), *(str(golden(name)) for name in NAMES)]
    ended = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == ""
