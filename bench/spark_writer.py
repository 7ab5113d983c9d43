"""Our writes on Spark as a service: Parquet files that Spark reads, into unpartitioned tables."""

import time
from functools import partial

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.own_writer import created
from bench.spark_reader import start
from lakewarden.table import Table
from tests.interop.lines import serve


def write(
    spark: SparkSession,
    table: str,
    source: str,
    operation: str,
    kind: str,
    options: dict[str, str] | None = None,
) -> float:
    """The seconds from the path of the rows to the completed commit; bulk inserts make a table."""
    begin = time.perf_counter()
    rows = spark.read.parquet(source)
    is_new = operation == "bulk_insert"
    opened = created(table, pq.read_schema(source), kind) if is_new else Table(table)
    getattr(opened, operation)(rows, options=options or {})
    return time.perf_counter() - begin


def _commands() -> dict[str, partial]:
    return {"write": partial(write, start())}


if __name__ == "__main__":
    serve(_commands)
