"""Frames: a scan as a Spark DataFrame.

Slices without logs become one Parquet scan of Spark's own. Slices with logs are merged in Spark's
Python workers, which must be able to import this package.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.read.merge.spec import ReadSpec
from lakewarden.engine.read.query.scan import Scan
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.spark.scan.merging import merge_tasks
from lakewarden.engine.spark.scan.native import share_out
from lakewarden.engine.spark.scan.settings import setting
from lakewarden.engine.spark.scan.where import EVERYTHING, sql_condition
from lakewarden.engine.spark.workers.addresses import check_reachable
from lakewarden.engine.spark.workers.cores import cores_of
from lakewarden.engine.spark.workers.types import ddl, quoted
from lakewarden.engine.storage.port import Location, Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LISTING_TASKS_PER_CORE = 2

# Spark looks at many files in a job, with a task for each file, which costs it 5 ms a file.
_LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
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
    if not scan.slices:
        return spark.createDataFrame([], ddl(scan.spec.output_schema))
    # A part without columns would lose its rows, and a part need not give a column twice.
    unique = tuple(dict.fromkeys(columns)) or (min(scan.spec.wanted()),)
    spec = replace(scan.spec, columns=unique)
    shares = share_out(storage, replace(scan, spec=spec), executor)
    parts = []
    if shares.addresses:
        parts.append(_parquet_frame(spark, shares.addresses, spec))
    if shares.slices:
        parts.append(_merged_frame(spark, storage.location, shares.slices, spec))
    frame = parts[0] if len(parts) == 1 else parts[0].union(parts[1])
    return frame if columns == unique else frame.select(*map(quoted, columns))


def _parquet_frame(spark: "SparkSession", addresses: Sequence[str], spec: ReadSpec) -> "DataFrame":
    wanted = spec.wanted()
    schema = pa.schema([field for field in spec.schema if field.name in wanted])
    reader = spark.read.schema(ddl(schema)).options(**_PARQUET_OPTIONS)
    with setting(spark, _LISTING_TASKS, str(cores_of(spark) * LISTING_TASKS_PER_CORE)):
        frame = reader.parquet(*addresses)
    condition = sql_condition(spec)
    if condition not in (None, EVERYTHING):
        frame = frame.where(condition)
    return frame.select(*map(quoted, spec.columns))


def _merged_frame(
    spark: "SparkSession", location: Location, slices: Sequence[FileSlice], spec: ReadSpec
) -> "DataFrame":
    tasks = merge_tasks(location, spec, slices, cores_of(spark))
    count = len(tasks.packed)
    # A range needs no Python process to be made, and puts one number into each partition.
    return spark.range(0, count, 1, count).mapInArrow(tasks, ddl(spec.output_schema))
