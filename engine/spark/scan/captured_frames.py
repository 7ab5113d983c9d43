"""Captured changes in workers: each task has some file groups' changes, in the order of commits."""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import pyarrow as pa

from lakewarden.engine.read.merge.group_changes import ChangeReader, ChangeSpec, GroupChange
from lakewarden.engine.read.query.captured import CapturedScan
from lakewarden.engine.read.query.scan import Scan
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.spark.scan.frames import scan_frame
from lakewarden.engine.spark.scan.merging import (
    TASK_BYTES,
    TASKS_PER_CORE,
    MergeTasks,
    handed_over,
    merge_tasks,
)
from lakewarden.engine.spark.workers.addresses import check_reachable
from lakewarden.engine.spark.workers.cores import cores_of
from lakewarden.engine.spark.workers.types import ddl, wire_schema
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class ChangeTasks:
    """Tasks by number, each one packed for itself: a worker opens only those that it runs."""

    location: Location
    spec: ChangeSpec
    packed: tuple[bytes, ...]
    # A task without rows.
    nothing: ClassVar[bytes] = pickle.dumps(())

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the tasks with these numbers, read where this runs."""
        reader = ChangeReader(open_storage(self.location), self.spec)
        schema = wire_schema(self.spec.output_schema)
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for change in pickle.loads(self.packed[number]):
                    for rows in reader.table(change).to_batches():
                        yield from handed_over(rows, schema)


Tasks: TypeAlias = MergeTasks | ChangeTasks


def tasks_of(location: Location, scan: Scan | CapturedScan, cores: int) -> Tasks:
    """Tasks that read a scan, for Spark to run on so many cores."""
    if isinstance(scan, Scan):
        return merge_tasks(location, scan.spec, scan.slices, cores)
    size_bytes = sum(change.size_bytes for change in scan.changes)
    count = min(max(cores * TASKS_PER_CORE, size_bytes // TASK_BYTES), len(scan.changes))
    parts = _stretches(scan.changes, count)
    return ChangeTasks(location, scan.spec, tuple(pickle.dumps(part) for part in parts))


def planned_frame(
    spark: "SparkSession", storage: Storage, scan: Scan | CapturedScan, executor: Executor
) -> "DataFrame":
    """The rows of a scan of any kind; evaluated when the frame is."""
    if isinstance(scan, Scan):
        return scan_frame(spark, storage, scan, executor)
    check_reachable(storage.location)
    schema = ddl(scan.output_schema)
    if not scan.changes:
        return spark.createDataFrame([], schema)
    tasks = tasks_of(storage.location, scan, cores_of(spark))
    count = len(tasks.packed)
    return spark.range(0, count, 1, count).mapInArrow(tasks, schema)


def _stretches(changes: Sequence[GroupChange], count: int) -> Iterator[tuple[GroupChange, ...]]:
    """The changes in so many parts of even length."""
    for number in range(count):
        first, end = (len(changes) * at // count for at in (number, number + 1))
        yield tuple(changes[first:end])
