"""Incoming frames: Spark DataFrames as rows to write, fetched if they are small.

Distributed frames: a DataFrame whose rows Spark's workers fit, divide and write.

The frame is evaluated twice where rows have to find their file groups: for their keys, and for
themselves. The driver holds the keys, about a hundred bytes a row, and never the rows.

the rewrite workers: Spark's workers, who rewrite files for a few rows that the driver has.

The rows travel with the orders for their file groups; workers read and write the files.
"""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, TypeGuard, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings, flag
from lakewarden.engine.spark.workers.addresses import check_reachable
from lakewarden.engine.spark.workers.cores import cores_of
from lakewarden.engine.spark.workers.keying import (
    Hashes,
    KeyedBatch,
    Keying,
    keyed,
    row_hashes,
    task_context,
)
from lakewarden.engine.spark.workers.older_sparks import arrow_of, placed_by
from lakewarden.engine.spark.workers.reports import (
    REPORT_DDL,
    Batches,
    packed_table,
    reported,
    reports_of,
    unpacked_table,
    written_file,
)
from lakewarden.engine.spark.workers.types import quoted
from lakewarden.engine.spark.workers.watched_jobs import Watch, WatchedJobs
from lakewarden.engine.spark.write.assigning import (
    ASSIGNED_DDL,
    TASK,
    Assigning,
    GroupWriting,
    Numbers,
    divided,
    packed_assignments,
)
from lakewarden.engine.spark.write.stream_writing import StreamWriting
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.table.merge_rules import PartialMode
from lakewarden.engine.write.distributed_rows import (
    BLOCK_SPECULATION,
    LOCAL_ROWS_MAX,
    DistributedWrite,
    GroupOrder,
    RowPreparation,
    places_of,
)
from lakewarden.engine.write.files.spec import WrittenFile, group_task
from lakewarden.engine.write.plan import WritePlan
from lakewarden.engine.write.request import Incoming, StreamBatch
from lakewarden.engine.write.streams import Stream, stream_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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


QUERY = "sql.streaming.queryId"
SPECULATION = "spark.speculation"
# A frame that Spark takes for larger is not fetched to see whether it really is.
FETCHED_BYTES_MAX = 64 << 20
# Up to here an error of Spark's guess does no harm, so that all rows may come at once.
SAFE_BYTES_MAX = 16 << 20
# Spark's guess where it knows nothing is the largest of its numbers.
_UNKNOWN_BYTES_MIN = 1 << 60


def is_frame(rows: object) -> "TypeGuard[DataFrame]":
    """Whether rows are a Spark DataFrame, classic or of a Connect session."""
    return any(
        one.__name__ == "DataFrame" and one.__module__.startswith("pyspark.sql")
        for one in type(rows).__mro__
    )


def incoming_frame(
    frame: "DataFrame", location: Location, settings: Settings, config: TableConfig
) -> Incoming | DistributedFrame:
    """The rows, fetched if they are few; otherwise they stay with Spark.

    How many they are is found out by Spark's guess at their size first: what it takes for large is
    not fetched. Of the others no more rows than the limit and one are. Where rows fill up one
    another, all of them are fetched: only then a plan can say what becomes of them. So are those
    that get a key here.
    """
    refuse_speculation(frame, settings)
    if config.merge.partial is not PartialMode.NONE or not config.key_fields:
        return Incoming(fetched(frame))
    limit = settings[LOCAL_ROWS_MAX]
    guess = guessed_bytes(frame)
    if limit and (guess is None or guess <= FETCHED_BYTES_MAX):
        is_safe = guess is not None and guess <= SAFE_BYTES_MAX
        rows = fetched(frame if is_safe else frame.limit(limit + 1))
        if len(rows) <= limit:
            return Incoming(rows, rewrite_workers=SparkWorkers(frame.sparkSession, location))
    check_reachable(location)
    return DistributedFrame(frame, location, fetched(frame.limit(0)).schema)


def batch_of(stream: Stream, rows: object) -> StreamBatch | None:
    """The batch that a caller names; Spark tells which query it belongs to, in a classic session.

    The thread that calls a function of foreachBatch has the query's identity.
    """
    if stream is None:
        return None
    batch = stream_batch(stream)
    if batch.query or not is_frame(rows):
        return batch
    context = getattr(rows.sparkSession, "_sc", None)
    query = None if context is None else context.getLocalProperty(QUERY)
    return replace(batch, query=query or "")


def fetched(frame: "DataFrame") -> pa.Table:
    """All rows of a frame."""
    return arrow_of(frame)


def guessed_bytes(frame: "DataFrame") -> int | None:
    """Spark's guess at the size of a frame; None if it has none, or keeps it for itself."""
    plan = getattr(frame, "_jdf", None)
    if plan is None:
        return None
    statistics = plan.queryExecution().optimizedPlan().stats()
    # A number that fits comes as one, a larger one as an object of Scala.
    guess = int(str(statistics.sizeInBytes()))
    return None if guess >= _UNKNOWN_BYTES_MIN else guess


def refuse_speculation(frame: "DataFrame", settings: Settings) -> None:
    """Two tasks that write the same rows at the same time are one too many."""
    if not settings[BLOCK_SPECULATION]:
        return
    if flag(frame.sparkSession.conf.get(SPECULATION, "false") or "false"):
        raise InvalidRequest(
            "speculative_execution",
            what="Lakewarden does not write through Spark while speculative execution is on.",
            why="The slower of two tasks could leave a file after the commit has cleaned up.",
            now=f"Set {SPECULATION}=false, or {BLOCK_SPECULATION.key}=false if you accept that.",
        )
