"""Frames: a scan as a Spark DataFrame.

Slices without logs become one Parquet scan of Spark's own. Slices with logs are merged in Spark's
Python workers, which must be able to import this package.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from lakewarden.engine.read.scan import Scan
from lakewarden.engine.read.spec import ReadSpec
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.spark.addresses import check_reachable, spark_address
from lakewarden.engine.spark.merging import merge_tasks
from lakewarden.engine.spark.native import share_out
from lakewarden.engine.spark.types import ddl, quoted
from lakewarden.engine.spark.where import EVERYTHING, sql_condition
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.view.slices import FileSlice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CORES_WHEN_UNKNOWN = 8

_PARQUET_OPTIONS = {
    # The files are named one by one: no character in a name is a pattern, no folder a column.
    "__globPaths__": "false",
    "recursiveFileLookup": "true",
    # Rows are the same whatever the session is set to.
    "datetimeRebaseMode": "CORRECTED",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
}


def scan_frame(
    spark: "SparkSession", storage: Storage, scan: Scan, executor: Executor
) -> "DataFrame":
    """The rows of a scan; evaluated when the frame is."""
    check_reachable(storage.location)
    columns = scan.spec.columns
    # Frames of their own have each column once, and at least one, or they would lose their rows.
    unique = tuple(dict.fromkeys(columns)) or (min(scan.spec.wanted()),)
    scan = replace(scan, spec=replace(scan.spec, columns=unique))
    shares = share_out(storage, scan, executor)
    frames = []
    if shares.native:
        frames.append(_parquet_frame(spark, storage, shares.native, scan.spec))
    if shares.merged:
        frames.append(_merged_frame(spark, storage.location, shares.merged, scan.spec))
    frame = _united(frames) if frames else spark.createDataFrame([], ddl(scan.spec.output_schema))
    return frame if columns == unique else frame.select(*map(quoted, columns))


def _united(frames: "Sequence[DataFrame]") -> "DataFrame":
    return frames[0] if len(frames) == 1 else frames[0].union(frames[1])


def _parquet_frame(
    spark: "SparkSession", storage: Storage, slices: Sequence[FileSlice], spec: ReadSpec
) -> "DataFrame":
    wanted = spec.wanted()
    schema = pa.schema([field for field in spec.schema if field.name in wanted])
    addresses = [
        spark_address(storage.uri(slice_.path(slice_.base_file)))
        for slice_ in slices
        if slice_.base_file is not None
    ]
    reader = spark.read.schema(ddl(schema)).options(**_PARQUET_OPTIONS)
    frame = reader.parquet(*filter(None, addresses))
    condition = sql_condition(spec)
    if condition not in (None, EVERYTHING):
        frame = frame.where(condition)
    return frame.select(*map(quoted, spec.columns))


def _merged_frame(
    spark: "SparkSession", location: Location, slices: Sequence[FileSlice], spec: ReadSpec
) -> "DataFrame":
    tasks = merge_tasks(location, spec, slices, _cores(spark))
    count = len(tasks.packed)
    # A range needs no Python process to be made, and puts one number into each partition.
    return spark.range(0, count, 1, count).mapInArrow(tasks, ddl(spec.output_schema))


def _cores(spark: "SparkSession") -> int:
    """The cores of the cluster; a Connect session does not tell them."""
    context = getattr(spark, "sparkContext", None)
    return CORES_WHEN_UNKNOWN if context is None else int(context.defaultParallelism)
