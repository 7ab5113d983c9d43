"""Java Hudi as a service that plans compactions, in the environment of the interop tests."""

import sys
import time
from functools import partial

from pyspark.sql import SparkSession

from bench.java_reader import start, versions
from tests.interop.lines import serve

SETTINGS = {
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.table.services.incremental.enabled": "true",
}


def plan(spark: SparkSession, table: str, expected: int) -> float:
    """The seconds until a plan for so many file groups is published."""
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    begin = time.perf_counter()
    rows = spark.sql(f"CALL run_compaction(op => 'schedule', path => '{table}')").collect()
    seconds = time.perf_counter() - begin
    assert [row["operation_size"] for row in rows] == [expected], rows
    return seconds


def _commands(bundle: str) -> dict[str, partial]:
    spark = start(bundle)
    return {"plan": partial(plan, spark), "versions": partial(versions, spark, bundle)}


if __name__ == "__main__":
    serve(lambda: _commands(sys.argv[1]))
