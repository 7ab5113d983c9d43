"""Java Hudi as a service that writes: Parquet files into tables without partitions.

It runs in the environment of the interop tests, as `bench.java_reader` does. Options that no case
names are Java's own, but for services after the write, which are another matter, and for as many
shuffle partitions as there are cores: more of them make two gigabytes slower.
"""

import sys
import time
from functools import partial

from pyspark.sql import SparkSession

from bench.java_reader import checksum, start, versions
from tests.interop.lines import serve

OPTIONS = {
    "hoodie.table.name": "orders",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.index.type": "SIMPLE",
    "hoodie.archive.automatic": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.datasource.compaction.async.enable": "false",
}
KINDS = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
SHUFFLES = ("hoodie.upsert.shuffle.parallelism", "hoodie.delete.shuffle.parallelism")


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
    cores = str(spark.sparkContext.defaultParallelism)
    (
        spark.read.parquet(source)
        .write.format("hudi")
        .options(**OPTIONS, **dict.fromkeys(SHUFFLES, cores))
        .option("hoodie.datasource.write.operation", operation)
        .option("hoodie.datasource.write.table.type", KINDS[kind])
        .options(**(options or {}))
        .mode("overwrite" if operation == "bulk_insert" else "append")
        .save(table)
    )
    return time.perf_counter() - begin


def _commands(bundle: str) -> dict[str, partial]:
    spark = start(bundle)
    cores = spark.sparkContext.defaultParallelism
    spark.conf.set("spark.sql.shuffle.partitions", cores)
    return {
        "write": partial(write, spark),
        "checksum": partial(checksum, spark),
        "versions": partial(versions, spark, bundle),
    }


if __name__ == "__main__":
    serve(lambda: _commands(sys.argv[1]))
