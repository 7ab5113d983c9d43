"""Java Hudi as a service that clusters in z-order, in the environment of the interop tests."""

import sys
import time
from functools import partial

from pyspark.sql import SparkSession

from bench.java_reader import checksum, start, versions
from tests.interop.lines import serve

SETTINGS = {
    "hoodie.archive.automatic": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.layout.optimize.strategy": "ZORDER",
}
COLUMNS = "user_id,event_time"


def cluster(spark: SparkSession, table: str) -> float:
    """The seconds of planning and carrying the plan out."""
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    begin = time.perf_counter()
    spark.sql(
        f"CALL run_clustering(path => '{table}', op => 'scheduleAndExecute', order => '{COLUMNS}')"
    ).collect()
    return time.perf_counter() - begin


def _commands(bundle: str) -> dict[str, partial]:
    spark = start(bundle)
    return {
        "cluster": partial(cluster, spark),
        "checksum": partial(checksum, spark),
        "versions": partial(versions, spark, bundle),
    }


if __name__ == "__main__":
    serve(lambda: _commands(sys.argv[1]))
