"""Addresses: where Spark finds a file that a storage knows.

Spark takes an address as it stands: a percent sign in it is one, nothing is decoded.
"""

from typing import TYPE_CHECKING

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.storage.local_folders import absolute
from lakewarden.engine.storage.memory import SCHEME as MEMORY
from lakewarden.engine.storage.port import Location
from lakewarden.engine.storage.protocols import scheme_of
from lakewarden.engine.storage.s3 import HADOOP

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# By our scheme, what Hadoop's file systems call it. Other stores are read in Python workers.
_HADOOP_SCHEMES = {
    "s3": "s3a",
    "s3a": "s3a",
    "s3n": "s3a",
    **{name: name for name in ("abfs", "abfss", "gs", "hdfs", "oss", "viewfs")},
}


def spark_address(uri: str) -> str | None:
    """The address under which Spark itself reads a file; None where it has no file system."""
    scheme = scheme_of(uri)
    if scheme in (None, "file"):
        # Without a scheme the path would be one of Spark's default file system.
        return f"file://{absolute(uri)[1]}"
    known = _HADOOP_SCHEMES.get(scheme)
    return known and f"{known}{uri[len(scheme) :]}"


def check_reachable(location: Location) -> None:
    """Refuse a storage that no other process can open."""
    if location.uri.startswith(MEMORY):
        raise InvalidRequest(
            "unsupported_spark_storage",
            what=f"Spark cannot read {location.uri}.",
            why="The table is in the memory of this process, and Spark runs in others.",
            now="Read it with read_arrow(), or keep it in a folder.",
            uri=location.uri,
        )


def reads_by_itself(spark: "SparkSession", location: Location) -> bool:
    """Whether Spark reaches a storage without us: by a file system of Hadoop's, with its options.

    Where it doesn't, our reader in its Python workers reads all files.
    """
    address = spark_address(location.uri)
    scheme = scheme_of(address or "")
    if scheme == "file":
        return True
    if scheme is None or not all(name.startswith(HADOOP) for name in location.options):
        return False
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        # A client of Spark Connect cannot know what its server has.
        return False
    session = spark._jsparkSession
    conf = session.sessionState().newHadoopConf()
    try:
        jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, conf)
    except Exception:
        return False
    return True
