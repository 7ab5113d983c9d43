"""Our Spark path as a service, and Spark's own Parquet scan beside it, to nowhere."""

import os
import time
import zlib
from functools import partial

from pyspark.sql import DataFrame, SparkSession

import lakewarden
from lakewarden.procedures.binding import invoke
from lakewarden.procedures.declaring.caller import PlainCaller
from lakewarden.procedures.registry import PROCEDURES
from lakewarden.table import Table
from tests.interop.lines import serve

CONFIGURATION = {
    "spark.driver.host": "localhost",
    "spark.driver.memory": "4g",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
}

CALLS = 20


def read(spark: SparkSession, table: str) -> float:
    """The seconds from the path of the table to the last row read."""
    begin = time.perf_counter()
    _consume(Table(table).read(spark))
    return time.perf_counter() - begin


def read_files(spark: SparkSession, files: list[str]) -> float:
    """The seconds that Spark takes for the same files without a table."""
    begin = time.perf_counter()
    _consume(spark.read.parquet(*files))
    return time.perf_counter() - begin


def select(spark: SparkSession, table: str, condition: str = "true") -> float:
    """The seconds from a SELECT over the table by its name to the last row read."""
    name = _registered(spark, table)
    begin = time.perf_counter()
    _consume(spark.sql(f"SELECT * FROM {name} WHERE {condition}"))
    return time.perf_counter() - begin


def read_source(spark: SparkSession, table: str) -> float:
    """The seconds that the data source in Python takes for all of it."""
    lakewarden.enable(spark)
    begin = time.perf_counter()
    _consume(spark.read.format("lakewarden").load(table))
    return time.perf_counter() - begin


def enable(spark: SparkSession) -> bool:
    """Put our classes into the session."""
    return lakewarden.enable(spark) is spark


def select_one(spark: SparkSession) -> float:
    """The seconds for the smallest statement, parsed and analysed a thousand times."""
    begin = time.perf_counter()
    for _ in range(1_000):
        spark.sql("SELECT 1")
    return time.perf_counter() - begin


def call(spark: SparkSession, table: str) -> float:
    """The seconds that a CALL takes longer than its procedure, called in this process."""
    begin = time.perf_counter()
    for _ in range(CALLS):
        spark.sql(f"CALL show_plans(path => '{table}')").collect()
    called = time.perf_counter()
    for _ in range(CALLS):
        list(invoke(PROCEDURES["show_plans"], PlainCaller(), (), {"path": table}))
    return (called - begin - (time.perf_counter() - called)) / CALLS


def checksum(spark: SparkSession, table: str, column: str) -> list[int]:
    """How many rows a snapshot has, and what a column adds up to."""
    return list(Table(table).read(spark).selectExpr("count(*)", f"sum({column})").first())


def _registered(spark: SparkSession, table: str) -> str:
    lakewarden.enable(spark)
    name = f"t_{zlib.crc32(table.encode())}"
    spark.sql(f"CREATE TABLE IF NOT EXISTS {name} USING lakewarden LOCATION '{table}'")
    return name


def _consume(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def start() -> SparkSession:
    """A session on all cores."""
    cores = len(os.sched_getaffinity(0))
    builder = SparkSession.builder.master(f"local[{cores}]")
    for key, value in CONFIGURATION.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _commands() -> dict[str, partial]:
    spark = start()
    return {
        "read": partial(read, spark),
        "read_files": partial(read_files, spark),
        "select": partial(select, spark),
        "read_source": partial(read_source, spark),
        "enable": partial(enable, spark),
        "select_one": partial(select_one, spark),
        "call": partial(call, spark),
        "checksum": partial(checksum, spark),
    }


if __name__ == "__main__":
    serve(_commands)
