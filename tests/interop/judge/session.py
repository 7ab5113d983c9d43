"""The judge's Spark session: one small JVM with the Hudi bundle, quick to start, in UTC."""

import os
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

# Many tiny queries: a quick start beats peak speed, and room saves thousands of collections.
JVM_FLAGS = (
    "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    " -Xms1g -Xmn600m -XX:MetaspaceSize=256m"
)
LOG_BUFFER_BYTES = 65_536

CONFIGURATION = {
    "spark.driver.extraJavaOptions": JVM_FLAGS,
    "spark.driver.host": "localhost",
    "spark.driver.memory": "2g",
    "spark.default.parallelism": "2",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def open_session(bundle: Path) -> SparkSession:
    """Start the JVM. Python hands over timestamps in its own zone, so that is set to UTC too."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("interop")
    builder = builder.config("spark.jars", str(bundle))
    builder = builder.config("spark.sql.warehouse.dir", tempfile.mkdtemp(prefix="interop-"))
    for key, value in CONFIGURATION.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    _make_buffers_small(session)
    _know_metadata_records(session)
    return session


def _know_metadata_records(session: SparkSession) -> None:
    """Have Java's own schema of metadata records be the first that the JVM knows.

    Java compares it by identity when it writes these, with what two caches of schemas hold. Where
    one of them has met the schema in a file before the class was loaded, the write fails.
    """
    assert session._jvm.org.apache.hudi.metadata.HoodieMetadataPayload.KEY_FIELD_NAME


def _make_buffers_small(session: SparkSession) -> None:
    """Java clears 16 MiB for each log that it opens, of metadata tables whatever one sets."""
    config = session._jvm.org.apache.hudi.common.config.HoodieMemoryConfig
    default = config.MAX_DFS_STREAM_BUFFER_SIZE.getClass().getDeclaredField("defaultValue")
    default.setAccessible(True)
    default.set(config.MAX_DFS_STREAM_BUFFER_SIZE, LOG_BUFFER_BYTES)
