"""Beeline, Hive's console for JDBC, which PySpark ships: run it against a server."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pyspark

from lakewarden.java_home import java_home

SPARK_HOME = Path(pyspark.__file__).parent
# Starting Java and fetching some rows; others may need the machine, too.
SECONDS_MAX = 300


@dataclass(frozen=True, slots=True)
class Told:
    """How it ended, and what it printed."""

    code: int
    lines: tuple[str, ...]
    errors: str


def beeline(port: int, *statements: str, user: str = "analyst", password: str = "any") -> Told:
    """Statements one after another in one connection; answers as lines with tabs."""
    url = f"jdbc:hive2://127.0.0.1:{port}"
    command = [SPARK_HOME / "bin" / "beeline", "--outputformat=tsv2", "--silent=true"]
    command += ["-u", url, "-n", user, "-p", password]
    for statement in statements:
        command += ["-e", statement]
    ended = subprocess.run(
        command,
        env={
            **os.environ,
            "JAVA_HOME": str(java_home()),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_BEELINE_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        },
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    return Told(ended.returncode, tuple(filter(None, ended.stdout.splitlines())), ended.stderr)
