"""Java Hudi as a service: all columns of a snapshot, to nowhere.

It runs in the environment of the interop tests, with a JVM made for speed and not for a quick
start as the judge's there.
"""

import os
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from tests.interop.lines import serve

CONFIGURATION = {
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    "spark.driver.host": "localhost",
    "spark.driver.memory": "4g",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
}


def read(spark: SparkSession, table: str) -> float:
    """The seconds from the path of the table to the last row read."""
    begin = time.perf_counter()
    _snapshot(spark, table).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begin


def checksum(spark: SparkSession, table: str, column: str) -> list[int]:
    """How many rows a snapshot has, and what a column adds up to."""
    return list(_snapshot(spark, table).selectExpr("count(*)", f"sum({column})").first())


def versions(spark: SparkSession, bundle: str) -> str:
    hudi = Path(bundle).stem.rpartition("-")[2]
    return f"Java Hudi {hudi} on Spark {spark.version}"


def _snapshot(spark: SparkSession, table: str) -> DataFrame:
    return spark.read.format("hudi").load(table)


def start(bundle: str, more: Mapping[str, str] | None = None) -> SparkSession:
    """A session on all cores, with more of a configuration where that is wanted."""
    cores = len(os.sched_getaffinity(0))
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.jars", bundle)
    for key, value in {**CONFIGURATION, **(more or {})}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _commands(bundle: str) -> dict[str, partial]:
    spark = start(bundle)
    return {
        "read": partial(read, spark),
        "checksum": partial(checksum, spark),
        "versions": partial(versions, spark, bundle),
    }


if __name__ == "__main__":
    serve(lambda: _commands(sys.argv[1]))
