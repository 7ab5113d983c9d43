"""Older Sparks: what PySpark 4 has and 3.5 lacks, with the same answer from both."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.spark.workers.types import wire_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OLDEST = (3, 5)
OLDEST_TO_SERVE = (4, 0)
# Values to try for each task, so that Spark's hash of one of them falls on it.
_TRIED_FOR_EACH = 64


def arrow_of(frame: "DataFrame") -> pa.Table:
    """All rows of a frame."""
    collect: Callable[[], pa.Table] | None = getattr(frame, "toArrow", None)
    if collect is not None:
        return collect()
    batches = _collected(frame)
    if batches:
        return pa.Table.from_batches(batches)
    return import_module("pyspark.sql.pandas.types").to_arrow_schema(frame.schema).empty_table()


def _collected(frame: "DataFrame") -> list[pa.RecordBatch]:
    """The rows in batches; why a task has failed is said as later Sparks do, without its stack."""
    java_error: type[Exception] = import_module("py4j.protocol").Py4JJavaError
    try:
        return cast("list[pa.RecordBatch]", cast("Any", frame)._collect_as_arrow())
    except java_error as error:
        cause, said = cast("Any", error).java_exception, str(error)
        while cause is not None:
            cause, said = cause.getCause(), cause.getMessage() or said
        raise import_module("pyspark.errors").PySparkException(said) from None


def message_of(error: Exception) -> str:
    """What an error of Spark says; by a method only since Spark 4."""
    said: Callable[[], str | None] = getattr(error, "getMessage", lambda: None)
    return str(said() or error)


def frame_of(spark: "SparkSession", rows: pa.Table, schema: str | None = None) -> "DataFrame":
    """A frame of some rows that are here, with the columns that they have, or as SQL says."""
    if spark_version(spark.version) >= (4, 0):
        return spark.createDataFrame(rows, schema) if schema else spark.createDataFrame(rows)
    struct = import_module("pyspark.sql.pandas.types").from_arrow_schema(rows.schema)
    if schema:
        struct = import_module("pyspark.sql.types")._parse_datatype_string(schema)
    session = cast("Any", spark)
    # What createDataFrame does in later ones. From Python's rows Spark would make a frame by a job.
    functions = session._jvm.PythonSQLUtils
    batches = session.sparkContext._serialize_to_jvm(
        rows.cast(wire_schema(rows.schema)).to_batches(),
        import_module("pyspark.sql.pandas.serializers").ArrowStreamSerializer(),
        functions.readArrowStreamFromFile,
        session._jvm.ArrowIteratorServer,
    )
    made = functions.toDataFrame(batches, struct.json(), session._jsparkSession)
    return cast("DataFrame", import_module("pyspark.sql").DataFrame(made, spark))


def all_settings(spark: "SparkSession") -> Mapping[str, str]:
    """What a session is set to."""
    if spark_version(spark.version) >= (4, 0):
        return spark.conf.getAll
    session, java = cast("Any", spark), cast("Any", spark.sparkContext)._jvm
    return dict(
        java.scala.collection.JavaConverters.mapAsJavaMap(session._jsparkSession.conf().getAll())
    )


def placed_by(frame: "DataFrame", count: int, column: str) -> "DataFrame":
    """The frame with each row in the partition whose number a column has."""
    place: Callable[[int, str], object] | None = getattr(frame, "repartitionById", None)
    if place is not None:
        return cast("DataFrame", place(count, column))
    seeds = ", ".join(map(str, _seeds(frame.sparkSession, count)))
    functions = import_module("pyspark.sql.functions")
    return frame.repartition(count, functions.expr(f"element_at(array({seeds}), {column} + 1)"))


def check_spark(version: str, oldest: tuple[int, int] = OLDEST) -> None:
    """Refuse a Spark that is too old, in one sentence of what it is and what is needed."""
    if spark_version(version) < oldest:
        needed = ".".join(map(str, oldest))
        raise InvalidRequest(
            "old_spark",
            what=f"This is Spark {version}, and Lakewarden needs {needed} for this.",
            why="Older ones lack interfaces that it uses."
            if oldest == OLDEST
            else "A server needs what Spark has since then; sessions work without it.",
            now=f"Install pyspark {needed} or newer.",
            version=version,
        )


def jar_name(version: str) -> str:
    """Which of our jars is for a Spark: from 4 on there is only Scala 2.13."""
    return "lakewarden.jar" if spark_version(version) >= (4, 0) else "lakewarden-spark-3.5.jar"


def spark_version(text: str) -> tuple[int, int]:
    """The two numbers that tell Sparks apart.

    >>> spark_version("3.5.7-amzn-0")
    (3, 5)
    """
    major, minor = re.findall(r"\d+", text)[:2]
    return int(major), int(minor)


@lru_cache(maxsize=64)
def _seeds(spark: "SparkSession", count: int) -> tuple[int, ...]:
    """For each partition a number that Spark's own hash sends there."""
    tried = count * _TRIED_FOR_EACH
    sent = f"transform(sequence(0, {tried}), one -> pmod(hash(cast(one as int)), {count}))"
    first: dict[int, int] = {}
    for seed, place in enumerate(spark.sql(f"SELECT {sent} AS places").collect()[0].places):
        first.setdefault(place, seed)
    return tuple(first[place] for place in range(count))
