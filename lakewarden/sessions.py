"""Spark sessions with Lakewarden in them. Nothing here is done to a session unasked."""

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from lakewarden.engine.spark.workers.older_sparks import check_spark, jar_name
from lakewarden.late_imports import install_sql, spark_source

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
    """Enable a session: procedures, table functions and the format `lakewarden`.

    Returns the session. Sessions that derive from it are enabled, too.
    `settings` are the permissions that a server's owner gives, `lakewarden.allowed.roots` and
    `lakewarden.read.only`; no statement changes them. A session of Spark Connect has the statements
    of its server.
    """
    # PySpark is needed here and nowhere else in the package's front doors.
    if isinstance(spark, import_module("pyspark.sql").SparkSession):
        check_spark(spark.version)
        install_sql(spark, settings or {})
    if hasattr(spark, "dataSource"):
        spark.dataSource.register(spark_source())
    return spark


def spark_settings() -> dict[str, str]:
    """Settings for a session's builder that make its Python workers faster.

    They change speed only. To undo one, leave it out, or set it to Spark's default:
    `spark.python.daemon.module` is `pyspark.daemon`, and
    `spark.python.unix.domain.socket.enabled` is false. Workers must be able to import Lakewarden.
    """
    return dict(WORKER_SETTINGS)


def jar_path() -> str:
    """The path of the jar with the classes that Spark loads, for sessions set up by settings.

    There is one for Spark 4 and one for Spark 3.5; this is that of the PySpark at hand. The
    settings are `spark.jars`, with this path, and `spark.sql.extensions`, with
    `io.lakewarden.spark.Extensions`.
    """
    name = jar_name(import_module("pyspark").__version__)
    return str(Path(__file__).with_name("sql_ext") / "jvm" / name)


def session(settings: Mapping[str, str] | None = None) -> "SparkSession":
    """The active session, or a new one with these settings; enabled.

    The workers of a new session run this interpreter, unless `PYSPARK_PYTHON` names another.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = import_module("pyspark.sql").SparkSession.builder
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    return enable(builder.getOrCreate(), settings)
