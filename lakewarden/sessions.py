"""Spark sessions with Lakewarden in them. Nothing here is done to a session unasked."""

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
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


def enable(spark: "SparkSession", settings: Mapping[str, str] | None = None) -> "SparkSession":
    """Let a session call procedures and table functions, and use the format `lakewarden`.

    The session is given back. Sessions that are made of it have the same, whoever connects to them.
    `settings` are the permissions that a server's owner gives, `lakewarden.allowed.roots` and
    `lakewarden.read.only`; no statement changes them. A session of Spark Connect has the statements
    of its server.
    """
    # PySpark is needed here and nowhere else in the package's front doors.
    if isinstance(spark, import_module("pyspark.sql").SparkSession):
        import_module("lakewarden.sql_ext.installation").install(spark, settings or {})
    spark.dataSource.register(import_module("lakewarden.data_source").LakewardenSource)
    return spark


def spark_settings() -> dict[str, str]:
    """Settings that make a session's Python workers quicker, to be passed to its builder.

    They change nothing but speed. Leave one out, or set it to what Spark has by default, and it is
    as if it had never been: `spark.python.daemon.module` is `pyspark.daemon`, and
    `spark.python.unix.domain.socket.enabled` is false. Workers must be able to import Lakewarden.
    """
    return dict(WORKER_SETTINGS)


def jar_path() -> str:
    """The jar with the classes that Spark loads, for a session that is set up by its settings.

    These are `spark.jars`, with this path, and `spark.sql.extensions`, with
    `io.lakewarden.spark.Extensions`.
    """
    return str(Path(__file__).with_name("sql_ext") / "jvm" / "lakewarden.jar")


def session(settings: Mapping[str, str] | None = None) -> "SparkSession":
    """The session there is, or a new one with the given settings, that is enabled.

    A new one's workers run this interpreter, unless `PYSPARK_PYTHON` names another one.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = import_module("pyspark.sql").SparkSession.builder
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    return enable(builder.getOrCreate(), settings)
