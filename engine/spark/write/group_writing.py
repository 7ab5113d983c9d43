"""Writing in workers: all rows of some file groups meet in one task, which makes their files."""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakewarden.engine.spark.workers.keying import task_context
from lakewarden.engine.spark.workers.reports import Batches, reported
from lakewarden.engine.spark.write.assigning import ASSIGNED, GROUP, RANK, TASK
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.table.config import table_config
from lakewarden.engine.write.distributed_rows import (
    DistributedWrite,
    GroupOrder,
    RowPreparation,
)
from lakewarden.engine.write.files.spec import GroupTask
from lakewarden.engine.write.files.written import WrittenFile
from lakewarden.engine.write.rows.combine import combined


@dataclass(frozen=True, slots=True)
class GroupWriting:
    """Makes the files of file groups; the orders are packed by task."""

    location: Location
    preparation: RowPreparation
    job: DistributedWrite
    packed: tuple[bytes, ...]

    def __call__(self, batches: Batches) -> Batches:
        return reported(lambda: self._written(batches))

    def _written(self, batches: Batches) -> Iterator[WrittenFile]:
        waiting = [batch for batch in batches if batch.num_rows]
        if not waiting:
            return
        storage = open_storage(self.location)
        rows = pa.Table.from_batches(waiting)
        waiting.clear()
        (task,) = set(rows.column(TASK).unique().to_pylist())
        orders: dict[int, GroupOrder] = pickle.loads(self.packed[task])
        rows = rows.sort_by([(GROUP, "ascending"), (RANK, "ascending")])
        numbers = rows.column(GROUP).to_numpy()
        rows = rows.drop_columns(list(ASSIGNED))
        deletes = self.preparation.deletes
        self.job.list_files(storage, orders.values(), _attempt(), deletes=deletes)
        for number, order in orders.items():
            start, end = np.searchsorted(numbers, [number, number + 1]).tolist()
            yield self._carried_out(storage, rows.slice(start, end - start), order)

    def _carried_out(self, storage: Storage, rows: pa.Table, order: GroupOrder) -> WrittenFile:
        task = order.task(self.preparation.fit(rows))
        return self.job.write_file(storage, _met(task, self.preparation), _attempt())


def _attempt() -> int:
    """The number of this try at the task, which no other try has."""
    return int(task_context().taskAttemptId())


def _met(task: GroupTask, preparation: RowPreparation) -> GroupTask:
    """The task; of rows that delete the same key one is left."""
    if not preparation.deletes:
        return task
    one_each = combined(task.rows, table_config(preparation.properties).merge, by_partition=False)
    if len(one_each) == len(task.rows):
        return task
    nothing = np.zeros(len(one_each), np.bool_)
    return GroupTask(task.key, task.slice, task.number, one_each, nothing, nothing)
