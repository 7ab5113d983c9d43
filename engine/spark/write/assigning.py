"""Assigning in workers: rows come once more, and learn which file groups the plan has given them.

Spark may hand over the rows of a partition in another order than before. Each one is known by the
hash of what the plan has seen of it. A row that the plan has not seen ends the write.
"""

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.spark.workers.keying import Hashes, row_hashes, task_context
from lakewarden.engine.spark.workers.reports import Batches, ErrorInWords
from lakewarden.engine.write.distributed_rows import RowPreparation

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
