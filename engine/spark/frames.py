"""Frames: a scan as a Spark DataFrame.

Slices without logs become one Parquet scan of Spark's own. Slices with logs are merged in workers,
to which only descriptors travel: a slice, and what is wanted of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.engine.read.scan import Scan
from lakewarden.engine.read.slice_reader import ReadSpec, SliceReader
from lakewarden.engine.spark.ddl import ddl
from lakewarden.engine.spark.where import sql_condition
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.table.schema import COMMIT_TIME
from lakewarden.engine.view.slices import FileSlice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Enough tasks a core to even out slices of different size; each one costs a worker some 10 ms.
TASKS_PER_CORE = 2
CORES_WHEN_UNKNOWN = 8


@dataclass(frozen=True, slots=True)
class MergeTask:
    """What a worker needs to read some slices."""

    location: Location
    spec: ReadSpec
    slices: tuple[FileSlice, ...]


def scan_frame(spark: "SparkSession", storage: Storage, scan: Scan) -> "DataFrame":
    """The rows of a scan; evaluated when the frame is."""
    native = _native(storage, scan)
    merged = [slice_ for slice_ in scan.slices if slice_ not in native]
    frames = []
    if native:
        frames.append(_parquet_frame(spark, storage, native, scan.spec))
    if merged or not native:
        frames.append(_merged_frame(spark, storage.location, merged, scan.spec))
    return frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])


def _native(storage: Storage, scan: Scan) -> list[FileSlice]:
    """The slices whose base file Spark reads to the very rows we would read."""
    spec = scan.spec
    if sql_condition(spec) is None or spec.drops_partition_columns or spec.history.versions:
        return []
    plain = [
        slice_
        for slice_ in scan.slices
        if slice_.base_file is not None
        and not slice_.log_files
        and None not in spec.partitions.values(slice_.partition).values()
    ]
    # One write makes all its files with one schema, so a footer per instant tells.
    samples = {slice_.base_instant: slice_ for slice_ in plain}
    same = {
        instant: _has_table_types(storage, slice_, spec.schema)
        for instant, slice_ in samples.items()
    }
    return [slice_ for slice_ in plain if same[slice_.base_instant]]


def _has_table_types(storage: Storage, slice_: FileSlice, schema: pa.Schema) -> bool:
    assert slice_.base_file is not None
    with storage.open(slice_.path(slice_.base_file)) as source:
        stored = pq.read_schema(source)
    return all(
        stored.field(field.name).type == field.type
        for field in schema
        if field.name in stored.names
    )


def _parquet_frame(
    spark: "SparkSession", storage: Storage, slices: Sequence[FileSlice], spec: ReadSpec
) -> "DataFrame":
    wanted = pa.schema([field for field in spec.schema if field.name in spec.wanted()])
    paths = [
        storage.uri(slice_.path(slice_.base_file)) for slice_ in slices if slice_.base_file
    ]
    # Partition values may hold characters that Spark would take for a pattern.
    frame = spark.read.schema(ddl(wanted)).option("__globPaths__", "false").parquet(*paths)
    condition = sql_condition(spec)
    if condition:
        frame = frame.where(condition)
    return frame.select(*(f"`{name}`" for name in spec.columns))


def _merged_frame(
    spark: "SparkSession", location: Location, slices: Sequence[FileSlice], spec: ReadSpec
) -> "DataFrame":
    tasks = tuple(MergeTask(location, spec, part) for part in _packed(slices, _slots(spark)))

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from task_batches(tasks[number])

    schema = ddl(spec.output_schema)
    # A range needs no Python process to be made, and puts one number into each task.
    return spark.range(0, len(tasks), 1, max(len(tasks), 1)).mapInArrow(read, schema)


def task_batches(task: MergeTask) -> Iterator[pa.RecordBatch]:
    """The rows of a task, read where the task runs."""
    reader = SliceReader(open_storage(task.location), task.spec)
    for slice_ in task.slices:
        yield from reader.batches(slice_)


def _slots(spark: "SparkSession") -> int:
    """How many tasks to make; a Connect session does not tell its cores, so take a usual number."""
    try:
        cores = spark.sparkContext.defaultParallelism
    except Exception:  # The class differs between classic PySpark and Connect clients.
        cores = CORES_WHEN_UNKNOWN
    return cores * TASKS_PER_CORE


def _packed(slices: Sequence[FileSlice], bins: int) -> list[tuple[FileSlice, ...]]:
    """Slices in at most so many tasks of about the same size, largest first."""
    tasks: list[list[FileSlice]] = [[] for _ in range(min(bins, len(slices)))]
    sizes = [0] * len(tasks)
    for slice_ in sorted(slices, key=lambda slice_: (-slice_.size_bytes, slice_.key)):
        smallest = sizes.index(min(sizes))
        tasks[smallest].append(slice_)
        sizes[smallest] += slice_.size_bytes
    return [tuple(task) for task in tasks]
