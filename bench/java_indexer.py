"""Java Hudi as a service that builds indexes, in the environment of the interop tests."""

import os
import sys
import time
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from bench.java_reader import start, versions
from tests.interop.judge.reading import sql
from tests.interop.lines import serve

SETTINGS = {
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.write.lock.provider": ("org.apache.hudi.client.transaction.lock.InProcessLockProvider"),
}
RECORD_INDEX = {"hoodie.metadata.global.record.level.index.enable": "true"}


def build(spark: SparkSession, table: str, statement: str, *, by_key: bool) -> dict[str, float]:
    """The seconds of a statement, and the CPU of the JVM meanwhile."""
    settings = SETTINGS | (RECORD_INDEX if by_key else {})
    began, cpu = time.perf_counter(), _cpu_seconds(spark)
    sql(spark, table, statements=[statement], settings=settings)
    return {"seconds": time.perf_counter() - began, "cpu_seconds": _cpu_seconds(spark) - cpu}


def _cpu_seconds(spark: SparkSession) -> float:
    pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _commands(bundle: str) -> dict[str, partial]:
    spark = start(bundle)
    return {"build": partial(build, spark), "versions": partial(versions, spark, bundle)}


if __name__ == "__main__":
    serve(lambda: _commands(sys.argv[1]))
