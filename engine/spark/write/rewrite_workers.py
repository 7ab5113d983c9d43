"""the rewrite workers: Spark's workers, who rewrite files for a few rows that the driver has.

The rows travel with the orders for their file groups; workers read and write the files.
"""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lakewarden.engine.spark.workers.addresses import check_reachable
from lakewarden.engine.spark.workers.cores import cores_of
from lakewarden.engine.spark.workers.keying import task_context
from lakewarden.engine.spark.workers.reports import (
    REPORT_DDL,
    Batches,
    packed_table,
    reported,
    unpacked_table,
    written_file,
)
from lakewarden.engine.spark.workers.watched_jobs import Watch, WatchedJobs
from lakewarden.engine.spark.write.division import divided
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows
from lakewarden.engine.write.distributed_rows import DistributedWrite, GroupOrder
from lakewarden.engine.write.files.spec import group_task
from lakewarden.engine.write.files.written import WrittenFile
from lakewarden.engine.write.plan import WritePlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class FileGroupRows:
    """The rows for one file group, packed."""

    order: GroupOrder
    keys: bytes
    columns: bytes


@dataclass(frozen=True, slots=True, eq=False)
class SparkWorkers:
    """The workers of a session."""

    spark: "SparkSession"
    location: Location

    def write(self, job: DistributedWrite, plan: WritePlan, watch: Watch) -> Iterator[WrittenFile]:
        check_reachable(self.location)
        tasks = divided(plan.groups, job, cores_of(self.spark))
        packed = tuple(
            pickle.dumps([file_group_rows(order, plan) for order in orders.values()])
            for orders in tasks
        )
        rewriting = FileGroupRowsWriting(self.location, job, packed)
        count = len(packed)
        written = self.spark.range(0, count, 1, count).mapInArrow(rewriting, REPORT_DDL)
        return map(written_file, WatchedJobs(self.spark, job.tag).reports(written, watch))


@dataclass(frozen=True, slots=True)
class FileGroupRowsWriting:
    """Makes the files of the tasks with some numbers, where this runs."""

    location: Location
    job: DistributedWrite
    packed: tuple[bytes, ...]

    def __call__(self, numbers: Batches) -> Batches:
        return reported(lambda: self._written(numbers))

    def _written(self, numbers: Batches) -> Iterator[WrittenFile]:
        storage, attempt = open_storage(self.location), int(task_context().taskAttemptId())
        chosen = [number for batch in numbers for number in batch.column(0).to_pylist()]
        packed = [one for number in chosen for one in pickle.loads(self.packed[number])]
        self.job.list_files(storage, [one.order for one in packed], attempt)
        for one in packed:
            yield self.job.write_file(storage, one.order.task(opened(one)), attempt)


def file_group_rows(order: GroupOrder, plan: WritePlan) -> FileGroupRows:
    """The rows of one file group, in the order of its task."""
    rows = group_task(plan.groups[order.number], plan.rows, order.number).rows
    marks = {
        "key": rows.keys,
        "partition": rows.partitions,
        "is_delete": rows.is_delete,
        "is_unconditional": rows.is_unconditional,
    }
    return FileGroupRows(order, packed_table(pa.table(marks)), packed_table(rows.rows))


def opened(one: FileGroupRows) -> KeyedRows:
    """The rows as they were when they were packed."""
    marks, rows = unpacked_table(one.keys), unpacked_table(one.columns)
    return KeyedRows(
        rows.combine_chunks(),
        marks.column("key").combine_chunks(),
        marks.column("partition").combine_chunks(),
        np.asarray(marks.column("is_delete")),
        np.asarray(marks.column("is_unconditional")),
    )
