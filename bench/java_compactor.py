"""Java Hudi as a service that compacts, in the environment of the interop tests."""

import sys
import time
from functools import partial

from pyspark.sql import SparkSession

from bench.java_reader import checksum, start, versions
from tests.interop.lines import serve

SETTINGS = {
    "hoodie.archive.automatic": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.parquet.compression.codec": "snappy",
}


def compact(spark: SparkSession, table: str) -> float:
    """The seconds from the pending plan to the completed commit."""
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    spark.sql(f"CALL run_compaction(op => 'schedule', path => '{table}')").collect()
    begin = time.perf_counter()
    spark.sql(f"CALL run_compaction(op => 'run', path => '{table}')").collect()
    return time.perf_counter() - begin


def _commands(bundle: str) -> dict[str, partial]:
    spark = start(bundle)
    return {
        "compact": partial(compact, spark),
        "checksum": partial(checksum, spark),
        "versions": partial(versions, spark, bundle),
    }


if __name__ == "__main__":
    serve(lambda: _commands(sys.argv[1]))
