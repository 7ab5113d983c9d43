"""Streams of Spark as a service: the files of a folder, each a batch, into tables of the peers.

It runs in the environment of the interop tests: Java Hudi's sink, and MERGE into Delta.
"""

import sys
from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from bench.java_reader import start, versions
from tests.interop.lines import serve

HUDI = {
    "hoodie.table.name": "orders",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": (
        "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    ),
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.datasource.compaction.async.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
}
DELTA = {
    "spark.kryo.registrator": "",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
QUIET = {"spark.sql.streaming.pollingDelay": "200ms"}
MERGE = (
    "MERGE INTO delta.`{table}` old USING new ON new.id = old.id "
    "WHEN MATCHED AND new.ts >= old.ts THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)

Begin = Callable[..., object]


def stream_of(spark: SparkSession, source: str, sample: str) -> DataFrame:
    """The files of a folder as a stream, one in each batch."""
    schema = spark.read.parquet(sample).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(source)


class Batches:
    """The query that runs; `taken` returns once it has written all files that are there."""

    def __init__(self, begin: Begin) -> None:
        self._begin = begin

    def begin(self, **asked: object) -> None:
        self._query = self._begin(**asked)

    def taken(self) -> int:
        self._query.processAllAvailable()
        return int(self._query.lastProgress["batchId"])

    def end(self) -> None:
        self._query.stop()


def commands(begin: Begin) -> dict[str, Callable[..., object]]:
    batches = Batches(begin)
    return {"begin": batches.begin, "taken": batches.taken, "end": batches.end}


def _into_hudi(
    spark: SparkSession, table: str, source: str, sample: str, checkpoint: str, options: dict
) -> object:
    writer = stream_of(spark, source, sample).writeStream.format("hudi")
    writer = writer.options(**HUDI, **options).option("checkpointLocation", checkpoint)
    return writer.outputMode("append").start(table)


def _into_delta(
    spark: SparkSession, table: str, source: str, sample: str, checkpoint: str, options: dict
) -> object:
    def merge(frame: DataFrame, _: int) -> None:
        frame.createOrReplaceTempView("new")
        frame.sparkSession.sql(MERGE.format(table=table))

    writer = stream_of(spark, source, sample).writeStream.foreachBatch(merge)
    return writer.option("checkpointLocation", checkpoint).start()


def _loaded(spark: SparkSession, table: str, source: str) -> None:
    """A new Delta table, with deletion vectors."""
    frame = spark.read.parquet(source)
    frame.write.format("delta").option("delta.enableDeletionVectors", "true").save(table)


def _commands(peer: str, jars: str) -> dict[str, Callable[..., object]]:
    spark = start(jars, QUIET | (DELTA if peer == "delta" else {}))
    spark.conf.set("spark.sql.shuffle.partitions", spark.sparkContext.defaultParallelism)
    if peer == "delta":
        return {**commands(partial(_into_delta, spark)), "load": partial(_loaded, spark)}
    return {**commands(partial(_into_hudi, spark)), "versions": partial(versions, spark, jars)}


if __name__ == "__main__":
    serve(lambda: _commands(*sys.argv[1:3]))
