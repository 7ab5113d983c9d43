"""Spark sessions with Lakewarden in them. Nothing here is done to a session unasked."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What makes Python workers quicker. Both are read when a session's first worker starts, so they
# have to be there when the session is built; a session without them is as Spark makes it.
WORKER_SETTINGS: Mapping[str, str] = {
    # Rows pass between Spark and its workers without TCP.
    "spark.python.unix.domain.socket.enabled": "true",
    # Workers begin with everything imported, and neither look for modules before a task nor look
    # through all of them for garbage after it: 2 ms of a core for a task instead of 17.
    "spark.python.daemon.module": "lakewarden.engine.spark.worker_daemon",
}


def enable(spark: "SparkSession") -> "SparkSession":
    """Let a session read and write the format `lakewarden`; the session itself is given back."""
    # PySpark is needed here and nowhere else in the package's front doors.
    source = import_module("lakewarden.data_source").LakewardenSource
    spark.dataSource.register(source)
    return spark


def spark_settings() -> dict[str, str]:
    """Settings that make a session's Python workers quicker, to be passed to its builder.

    They change nothing but speed. Leave one out, or set it to what Spark has by default, and it is
    as if it had never been: `spark.python.daemon.module` is `pyspark.daemon`, and
    `spark.python.unix.domain.socket.enabled` is false. Workers must be able to import Lakewarden.
    """
    return dict(WORKER_SETTINGS)


def session(settings: Mapping[str, str] | None = None) -> "SparkSession":
    """The session there is, or a new one with the given settings, that knows the format."""
    builder = import_module("pyspark.sql").SparkSession.builder
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    return enable(builder.getOrCreate())
