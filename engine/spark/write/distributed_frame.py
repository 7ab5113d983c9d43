"""Distributed frames: a DataFrame whose rows Spark's workers fit, divide and write.

The frame is evaluated twice where rows have to find their file groups: for their keys, and for
themselves. The driver holds the keys, about a hundred bytes a row, and never the rows.
"""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.spark.workers.cores import cores_of
from lakewarden.engine.spark.workers.keying import Hashes, KeyedBatch, Keying, keyed, row_hashes
from lakewarden.engine.spark.workers.older_sparks import placed_by
from lakewarden.engine.spark.workers.reports import REPORT_DDL, reports_of, written_file
from lakewarden.engine.spark.workers.types import quoted
from lakewarden.engine.spark.workers.watched_jobs import Watch, WatchedJobs
from lakewarden.engine.spark.write.assigning import (
    ASSIGNED_DDL,
    TASK,
    Assigning,
    Numbers,
    packed_assignments,
)
from lakewarden.engine.spark.write.division import divided
from lakewarden.engine.spark.write.group_writing import GroupWriting
from lakewarden.engine.spark.write.stream_writing import StreamWriting
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows
from lakewarden.engine.write.distributed_rows import (
    DistributedWrite,
    GroupOrder,
    RowPreparation,
    places_of,
)
from lakewarden.engine.write.files.written import WrittenFile
from lakewarden.engine.write.plan import WritePlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, eq=False)
class DistributedFrame:
    """A DataFrame to be written to the table at a location."""

    frame: "DataFrame"
    location: Location
    # The columns as they come to workers.
    schema: pa.Schema

    def keyed(self, preparation: RowPreparation, columns: Sequence[str]) -> "KeyedFrame":
        chosen = tuple(columns)
        described = self.frame.mapInArrow(Keying(preparation, chosen), REPORT_DDL)
        batches = [cast(KeyedBatch, report) for report in reports_of(described)]
        empty = preparation.fit(self.schema.empty_table())
        rows = keyed([batch.packed for batch in batches], empty, chosen)
        return KeyedFrame(
            self,
            preparation,
            chosen,
            rows,
            row_hashes(rows, chosen),
            sum(batch.unpacked_bytes for batch in batches),
            _sizes(batches),
        )

    def as_they_come(self, preparation: RowPreparation) -> "StreamedFrame":
        return StreamedFrame(self, preparation, preparation.fit(self.schema.empty_table()))


@dataclass(frozen=True, slots=True, eq=False)
class StreamedFrame:
    """A frame that is divided where its rows are."""

    source: DistributedFrame
    preparation: RowPreparation
    rows: KeyedRows
    unpacked_bytes: int = 0
    is_keyed: bool = False

    def write(self, job: DistributedWrite, plan: WritePlan, watch: Watch) -> Iterator[WrittenFile]:
        """Make the files; the plan is empty, and nothing is sent from one worker to another."""
        writing = StreamWriting(self.source.location, self.preparation, job)
        written = self.source.frame.mapInArrow(writing, REPORT_DDL)
        jobs = WatchedJobs(self.source.frame.sparkSession, job.tag)
        return map(written_file, jobs.reports(written, watch))


@dataclass(frozen=True, slots=True, eq=False)
class KeyedFrame:
    """A frame whose keys are known."""

    source: DistributedFrame
    preparation: RowPreparation
    columns: tuple[str, ...]
    rows: KeyedRows
    hashes: Hashes
    unpacked_bytes: int
    # The partitions of Spark that have rows, in order, and how many.
    part_sizes: tuple[tuple[int, int], ...]
    is_keyed: bool = True

    def write(self, job: DistributedWrite, plan: WritePlan, watch: Watch) -> Iterator[WrittenFile]:
        """Send each row to the task that has its file group, and make the files there."""
        if not plan.groups:
            return iter(())
        frame = self.source.frame
        tasks = divided(plan.groups, job, cores_of(frame.sparkSession))
        packed = packed_assignments(self.hashes, self.part_sizes, assigned_rows(plan))
        assigning = Assigning(
            self.preparation,
            self.columns,
            packed,
            _task_of_group(tasks, len(plan.groups)).tobytes(),
        )
        writing = GroupWriting(
            self.source.location, self.preparation, job, tuple(map(pickle.dumps, tasks))
        )
        written = (
            placed_by(frame.mapInArrow(assigning, _with_numbers(frame)), len(tasks), TASK)
        ).mapInArrow(writing, REPORT_DDL)
        jobs = WatchedJobs(frame.sparkSession, job.tag)
        return map(written_file, jobs.reports(written, watch))


def assigned_rows(plan: WritePlan) -> tuple[npt.NDArray[np.int64], Numbers, Numbers]:
    """Which far row goes to which group, and which place it has there; in the order of rows."""
    places = places_of(plan.rows)
    parts = [np.concatenate([one.updates, one.inserts, one.departures]) for one in plan.groups]
    sizes = [len(part) for part in parts]
    rows = places[np.concatenate(parts).astype(np.int64)]
    groups = np.repeat(np.arange(len(parts), dtype=np.int32), sizes)
    ranks = np.concatenate([np.arange(size, dtype=np.int32) for size in sizes])
    order = np.argsort(rows, kind="stable")
    return rows[order], groups[order], ranks[order]


def _task_of_group(tasks: Sequence[dict[int, GroupOrder]], group_count: int) -> Numbers:
    numbers = np.zeros(group_count, np.int32)
    for number, orders in enumerate(tasks):
        numbers[list(orders)] = number
    return numbers


def _with_numbers(frame: "DataFrame") -> str:
    """The columns of a frame in Spark's words, with those of the assignment behind them."""
    columns = ", ".join(
        f"{quoted(field.name)} {field.dataType.simpleString()}" for field in frame.schema
    )
    return f"{columns}, {ASSIGNED_DDL}"


def _sizes(batches: Sequence[KeyedBatch]) -> tuple[tuple[int, int], ...]:
    return tuple(
        (part, sum(batch.row_count for batch in members))
        for part, members in groupby(batches, key=lambda batch: batch.part)
    )
