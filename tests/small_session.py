"""Spark sessions that start soon and need little, here or in a process of their own."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark import StatusTracker
from pyspark.sql import SparkSession

from lakewarden.java_home import java_home
from lakewarden.sessions import WORKER_SETTINGS

HEARD_MS_MAX = 60_000
TIME_ZONE = "America/New_York"
SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.driver.bindAddress": "127.0.0.1",
    # Such a short life does not pay for optimised code.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    # On by default since Spark 4.1.
    "spark.sql.scripting.enabled": "true",
    "spark.sql.session.timeZone": TIME_ZONE,
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    **WORKER_SETTINGS,
}


def status_of(spark: SparkSession) -> StatusTracker:
    """What a session says of its jobs. It hears of them later than they happen: it has, by now."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(HEARD_MS_MAX)
    return spark.sparkContext.statusTracker()


def printed(script: str, arguments: Sequence[str], folder: Path) -> str:
    """What a script prints that has a Spark session of its own."""
    environment = {
        **os.environ,
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1",
    }
    ended = subprocess.run(
        [sys.executable, script, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
