"""Tasks of table services on Spark: an executor whose workers are those of a session.

Function and tasks travel pickled, a storage as its location; results come back pickled in rows. All
jobs of an executor have one tag, and are called off as a whole.
"""

import io
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self, TypeVar, cast, runtime_checkable

from lakewarden.engine.spark.workers.addresses import check_reachable
from lakewarden.engine.spark.workers.cores import cores_of
from lakewarden.engine.spark.workers.keying import task_context
from lakewarden.engine.spark.workers.reports import REPORT_DDL, Batches, reported
from lakewarden.engine.spark.workers.watched_jobs import WatchedJobs
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")


@runtime_checkable
class Watched(Protocol):
    """A function that knows whether its attempt may go on."""

    def assert_mine(self) -> None: ...


@runtime_checkable
class Retried(Protocol):
    """A function that names files differently when a task is tried again."""

    def tried(self, task_attempt: int) -> Self: ...


class SparkExecutor:
    """The workers of a session, classic or remote; one job for each `map`."""

    def __init__(self, spark: "SparkSession", group: str) -> None:
        self._spark = spark
        self._jobs = WatchedJobs(spark, group)

    @property
    def workers(self) -> int:
        return cores_of(self._spark)

    def map(
        self, function: Callable[[TaskT], ResultT], tasks: Sequence[TaskT]
    ) -> Iterator[ResultT]:
        """Results in the order of the tasks, when all of them are done."""
        if not tasks:
            return
        orders = TaskBatch(packed(function), tuple(map(packed, tasks)))
        count = len(tasks)
        # Planned here: a remote session plans in the thread that it was asked in.
        frame = self._spark.range(0, count, 1, count).mapInArrow(orders, REPORT_DDL)
        watch = function.assert_mine if isinstance(function, Watched) else _go_on
        for result in self._jobs.reports(frame, watch):
            yield cast(ResultT, result)

    def cancel(self) -> None:
        """Stop the workers; nothing happens where none is at work."""
        self._jobs.cancel()


@dataclass(frozen=True, slots=True)
class TaskBatch:
    """A function and its tasks, packed; a worker runs those with some numbers."""

    function: bytes
    tasks: tuple[bytes, ...]

    def __call__(self, numbers: Batches) -> Batches:
        return reported(lambda: self._results(numbers))

    def _results(self, numbers: Batches) -> Iterator[object]:
        function = unpacked(self.function)
        if isinstance(function, Retried):
            function = function.tried(int(task_context().taskAttemptId()))
        assert callable(function)
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield function(unpacked(self.tasks[number]))


def packed(value: object) -> bytes:
    """A value as bytes that another process makes the same of; storages become their locations."""
    sink = io.BytesIO()
    _Packer(sink, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return sink.getvalue()


def unpacked(content: bytes) -> object:
    return _Unpacker(io.BytesIO(content)).load()


class _Packer(pickle.Pickler):
    def persistent_id(self, value: object) -> Location | None:
        is_storage = hasattr(value, "create_exclusive")
        location = getattr(value, "location", None) if is_storage else value
        if not isinstance(location, Location):
            return None
        check_reachable(location)
        return location if is_storage else None


class _Unpacker(pickle.Unpickler):
    def persistent_load(self, location: Location) -> object:
        return open_storage(location)


def _go_on() -> None:
    """For functions that do not know of an attempt."""
