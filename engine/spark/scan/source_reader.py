"""The reader of the data source: the rows of a scan, merged in Python workers as Arrow batches.

Other than `Table.read` it cannot leave files to Spark's own Parquet scan, and reads all columns:
that is all that data sources in Python can do.
"""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from lakewarden.engine.read.query.scan import Scan
from lakewarden.engine.spark.scan.merging import MergeTask, MergeTasks, merge_tasks
from lakewarden.engine.spark.workers.addresses import check_reachable
from lakewarden.engine.spark.workers.cores import CORES_WHEN_UNKNOWN
from lakewarden.engine.storage.port import Location


class ScanReader(DataSourceReader):
    """Reads a scan; each partition is one task of about the same size."""

    def __init__(self, location: Location, scan: Scan) -> None:
        check_reachable(location)
        self._tasks = merge_tasks(location, scan.spec, scan.slices, CORES_WHEN_UNKNOWN)

    def partitions(self) -> Sequence[InputPartition]:
        # Without any, Spark would read a partition that was never planned.
        empty = pickle.dumps(MergeTask((), {}))
        return [InputPartition(packed) for packed in self._tasks.packed or (empty,)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        tasks: MergeTasks = replace(self._tasks, packed=(partition.value,))
        return tasks(iter([pa.record_batch({"number": [0]})]))

    def __getstate__(self) -> MergeTasks:
        # Partitions travel by themselves: none of them has to carry the others.
        return replace(self._tasks, packed=())

    def __setstate__(self, state: MergeTasks) -> None:
        self._tasks = state
