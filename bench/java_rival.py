"""Java Hudi as a service of two writers: a large write and a small one on one of its file groups.

Both are threads of one JVM in the environment of the interop tests. The small one comes when the
large one has begun a few of its files, and takes the file group of one that comes later.
"""

import sys
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from bench.java_reader import start, versions
from bench.java_writer import OPTIONS, SHUFFLES
from tests.interop.lines import reasons, serve

TOGETHER = {
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": (
        "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
    ),
    "hoodie.write.num.retries.on.conflict.failures": "0",
    "hoodie.client.heartbeat.interval_in_ms": "60000",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.metadata.enable": "false",
}
# So many of its files the large write has begun when the small one comes.
BEGUN = 3
PATIENCE_SECONDS = 1_800


def write(
    spark: SparkSession, table: str, source: str, operation: str, options: Mapping[str, str]
) -> None:
    mode = "overwrite" if operation == "bulk_insert" else "append"
    (
        spark.read.parquet(source)
        .write.format("hudi")
        .options(**OPTIONS)
        .options(**dict.fromkeys(SHUFFLES, "2"))
        .options(**TOGETHER, **options)
        .option("hoodie.datasource.write.operation", operation)
        .mode(mode)
        .save(table)
    )


def order(spark: SparkSession, table: str, source: str) -> list[str]:
    """The partitions in the order in which a large write comes to them, found by one."""
    known = set(_files(table))
    write(spark, table, source, "upsert", {})
    made = [path for path in _files(table) if path not in known]
    return [path.parent.name for path in sorted(made, key=lambda path: path.stat().st_mtime_ns)]


def race(
    spark: SparkSession, table: str, large: str, small: str, options: Mapping[str, str]
) -> dict[str, object]:
    """What became of both writes, and the bytes of the large one where it wrote in vain."""
    known = set(_files(table))
    began = time.perf_counter()
    with ThreadPoolExecutor(1) as pool:
        work = partial(write, spark, table, large, "upsert", options)
        writing = pool.submit(work)
        _wait_until_begun(table, known, writing)
        own = {path.name.rpartition("_")[2] for path in _files(table) if path not in known}
        small_answer = _answer(partial(write, spark, table, small, "upsert", options))
        answer = _answer(partial(writing.result, PATIENCE_SECONDS))
    made = [path for path in _files(table) if path.name.rpartition("_")[2] in own]
    vain = [] if answer == "committed" else made
    return {
        "seconds": time.perf_counter() - began,
        "large": answer,
        "small": small_answer,
        "bytes": sum(path.stat().st_size for path in vain),
        "files": len(vain),
    }


def _wait_until_begun(table: str, known: set[Path], writing: Future[None]) -> None:
    while len(set(_files(table)) - known) < BEGUN and not writing.done():
        time.sleep(0.02)


def _files(table: str) -> list[Path]:
    return [path for path in Path(table).glob("p=*/*.parquet") if not path.name.startswith(".")]


def _answer(work: partial) -> str:
    try:
        work()
    except Exception as error:  # whatever Java throws is an answer here
        said = " because of ".join([str(error), *reasons(error)])
        return "early" if "EarlyConflict" in said else "late" if "Conflict" in said else said[:500]
    return "committed"


def _commands(bundle: str) -> dict[str, partial]:
    # Otherwise the tasks of the small write wait for all of the large one.
    spark = start(bundle, {"spark.scheduler.mode": "FAIR"})
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    return {
        "write": partial(write, spark),
        "order": partial(order, spark),
        "race": partial(race, spark),
        "versions": partial(versions, spark, bundle),
    }


if __name__ == "__main__":
    serve(lambda: _commands(sys.argv[1]))
