"""Our streams on Spark as a service: the files of a folder, each a batch, by `stream_upsert`."""

from functools import partial

from pyspark.sql import SparkSession

from bench.peer_streams import QUIET, commands, stream_of
from bench.spark_reader import start
from lakewarden.streaming import stream_upsert
from tests.interop.lines import serve


def _into_ours(
    spark: SparkSession, table: str, source: str, sample: str, checkpoint: str, options: dict
) -> object:
    frame = stream_of(spark, source, sample)
    return stream_upsert(frame, table, checkpoint=checkpoint, options=options)


def _commands() -> dict:
    spark = start()
    for key, value in QUIET.items():
        spark.conf.set(key, value)
    return commands(partial(_into_ours, spark))


if __name__ == "__main__":
    serve(_commands)
