"""Assigning in workers: rows come once more, and learn which file groups the plan has given them.

Spark may hand over the rows of a partition in another order than before. Each one is known by the
hash of what the plan has seen of it. A row that the plan has not seen ends the write.

Division: the file groups of a write in tasks of about the same work.

Writing in workers: all rows of some file groups meet in one task, which makes their files.
"""

import heapq
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.spark.workers.keying import Hashes, row_hashes, task_context
from lakewarden.engine.spark.workers.reports import Batches, ErrorInWords, reported
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.table.config import table_config
from lakewarden.engine.write.distributed_rows import (
    DistributedWrite,
    GroupOrder,
    RowPreparation,
    group_order,
)
from lakewarden.engine.write.files.spec import GroupTask, GroupWork, WrittenFile
from lakewarden.engine.write.rows.combine import combined

TASKS_PER_CORE = 2
# A task holds the rows of its groups in memory, so that it gets no more groups than make this much.
TASK_BYTES = 128 << 20


def divided(
    groups: Sequence[GroupWork], job: DistributedWrite, cores: int
) -> list[dict[int, GroupOrder]]:
    """The groups in tasks of about the same work, the largest first, each to the least."""
    costs = [job.limits.bytes_of(work.row_count) + _old_bytes(work) for work in groups]
    wanted = max(cores * TASKS_PER_CORE, sum(costs) // TASK_BYTES)
    tasks: list[dict[int, GroupOrder]] = [{} for _ in range(min(wanted, len(groups)))]
    loads = [(0, number) for number in range(len(tasks))]
    for at in sorted(range(len(groups)), key=lambda at: (-costs[at], at)):
        load, number = loads[0]
        tasks[number][at] = group_order(groups[at], at)
        heapq.heapreplace(loads, (load + costs[at], number))
    return tasks


def _old_bytes(work: GroupWork) -> int:
    return work.slice.size_bytes if work.slice else 0


Numbers = npt.NDArray[np.int32]

# Which of Spark's tasks a row goes to, which file group, and which place among the group's rows.
TASK, GROUP, RANK = "_lakewarden_task", "_lakewarden_group", "_lakewarden_rank"
ASSIGNED = (TASK, GROUP, RANK)
ASSIGNED_DDL = ", ".join(f"`{name}` int" for name in ASSIGNED)


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """What becomes of the rows of one partition; a row may go nowhere, or to several groups."""

    # Of every row, as the plan has seen it.
    hashes: Hashes
    # Ascending places of rows that go somewhere, and where they go.
    rows: Numbers
    groups: Numbers
    ranks: Numbers

    def of(self, places: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], Numbers, Numbers]:
        """For some rows: which of them goes where, by their numbers, groups and ranks."""
        firsts = np.searchsorted(self.rows, places, "left")
        counts = np.searchsorted(self.rows, places, "right") - firsts
        which = np.repeat(np.arange(len(places)), counts)
        before = np.cumsum(counts) - counts
        chosen = np.repeat(firsts - before, counts) + np.arange(counts.sum())
        return which, self.groups[chosen], self.ranks[chosen]


@dataclass(frozen=True, slots=True)
class Assigning:
    """Gives rows their assignments; each is packed for itself, since a worker needs only some."""

    preparation: RowPreparation
    columns: tuple[str, ...]
    packed: Mapping[int, bytes]
    tasks: bytes

    def __call__(self, batches: Batches) -> Batches:
        part = task_context().partitionId()
        if part not in self.packed:
            for batch in batches:
                if batch.num_rows:
                    raise rows_changed()
            return
        assignment: Assignment = pickle.loads(self.packed[part])
        task_of: Numbers = np.frombuffer(self.tasks, np.int32)
        known = _Known(assignment.hashes)
        for batch in batches:
            if batch.num_rows:
                yield from self._assigned(batch, assignment, known, task_of)
        known.assert_all_came()

    def _assigned(
        self, batch: pa.RecordBatch, assignment: Assignment, known: "_Known", task_of: Numbers
    ) -> Iterator[pa.RecordBatch]:
        rows = self.preparation.fit(pa.Table.from_batches([batch]))
        places = known.places_of(row_hashes(rows, self.columns))
        which, groups, ranks = assignment.of(places)
        if len(which):
            taken = batch if _is_all(which, batch.num_rows) else batch.take(pa.array(which))
            numbers = (task_of[groups], groups, ranks)
            yield pa.RecordBatch.from_arrays(
                [*taken.columns, *(pa.array(one, pa.int32()) for one in numbers)],
                names=[*taken.schema.names, *ASSIGNED],
            )


class _Known:
    """The rows that the plan has seen, each of which comes again exactly once."""

    def __init__(self, hashes: Hashes) -> None:
        self._order = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._order]
        # For the first place of each hash, how many of its rows have come.
        self._came = np.zeros(len(hashes), np.int64)

    def places_of(self, hashes: Hashes) -> npt.NDArray[np.int64]:
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        firsts = np.searchsorted(self._sorted, ordered, "left")
        repeats = np.arange(len(ordered)) - np.searchsorted(ordered, ordered, "left")
        found = np.minimum(firsts, len(self._sorted) - 1)
        at = firsts + self._came[found] + repeats
        if (at >= len(self._sorted)).any() or (self._sorted[at] != ordered).any():
            raise rows_changed()
        np.add.at(self._came, firsts, 1)
        places = np.empty(len(ordered), np.int64)
        places[order] = self._order[at]
        return places

    def assert_all_came(self) -> None:
        if self._came.sum() != len(self._sorted):
            raise rows_changed()


def packed_assignments(
    hashes: Hashes,
    part_sizes: Sequence[tuple[int, int]],
    assigned: tuple[npt.NDArray[np.int64], Numbers, Numbers],
) -> dict[int, bytes]:
    """By partition, what becomes of its rows; the rows of all are numbered one after the other."""
    rows, groups, ranks = assigned
    packed, start = {}, 0
    for part, size in part_sizes:
        chosen = slice(*np.searchsorted(rows, [start, start + size]).tolist())
        local = (rows[chosen] - start).astype(np.int32)
        packed[part] = pickle.dumps(
            Assignment(hashes[start : start + size], local, groups[chosen], ranks[chosen])
        )
        start += size
    return packed


def rows_changed() -> ErrorInWords:
    return ErrorInWords(
        InvalidRequest(
            "rows_changed",
            what="Spark returned other rows when it evaluated the frame again.",
            why="A write reads the frame twice: first for the keys, then for the rows.",
            now="Nothing was written. Cache or checkpoint the frame, then write it.",
        )
    )


def _is_all(which: npt.NDArray[np.int64], count: int) -> bool:
    return len(which) == count and bool((which == np.arange(count)).all())


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
