"""Merging in workers: tasks of about the same size, to which only descriptors travel."""

import heapq
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.read.merge.spec import ReadSpec
from lakewarden.engine.spark.workers.types import wire_schema
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location

# Enough tasks a core to even out slices of different size; each one costs a worker some 40 ms.
TASKS_PER_CORE = 2
# A larger task would lose more when it fails, and leave the cores of a large cluster idle.
TASK_BYTES = 128 << 20
# The JVM holds a few batches of every running task.
BATCH_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Some slices, and what of the query is about them alone."""

    slices: tuple[FileSlice, ...]
    whole_slices: Mapping[FileGroupId, FileSlice]


@dataclass(frozen=True, slots=True)
class MergeTasks:
    """Tasks by number, each one packed for itself: a worker opens only those that it runs."""

    location: Location
    spec: ReadSpec
    packed: tuple[bytes, ...]
    # A task without rows.
    nothing: ClassVar[bytes] = pickle.dumps(MergeTask((), {}))

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the tasks with these numbers, read where this runs."""
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from self._rows(pickle.loads(self.packed[number]))

    def _rows(self, task: MergeTask) -> Iterator[pa.RecordBatch]:
        spec = replace(self.spec, whole_slices=task.whole_slices)
        reader = SliceReader(open_storage(self.location), spec)
        schema = wire_schema(spec.output_schema)
        for slice_ in task.slices:
            for rows in reader.batches(slice_):
                yield from handed_over(rows, schema)


def merge_tasks(
    location: Location, spec: ReadSpec, slices: Sequence[FileSlice], cores: int
) -> MergeTasks:
    """Tasks that read some slices, for Spark to run on so many cores."""
    size_bytes = sum(slice_.size_bytes for slice_ in slices)
    wanted = max(cores * TASKS_PER_CORE, size_bytes // TASK_BYTES)
    parts = balanced(slices, min(wanted, len(slices)))
    packed = tuple(pickle.dumps(_task(part, spec)) for part in parts)
    return MergeTasks(location, replace(spec, whole_slices={}), packed)


def _task(slices: tuple[FileSlice, ...], spec: ReadSpec) -> MergeTask:
    keys = {slice_.key for slice_ in slices} & spec.whole_slices.keys()
    return MergeTask(slices, {key: spec.whole_slices[key] for key in keys})


def balanced(slices: Sequence[FileSlice], count: int) -> list[tuple[FileSlice, ...]]:
    """The slices in so many parts of about the same size: the largest first, each to the least."""
    parts: list[list[FileSlice]] = [[] for _ in range(count)]
    loads = [(0, number) for number in range(count)]
    for slice_ in sorted(slices, key=lambda slice_: (-slice_.size_bytes, slice_.key)):
        size_bytes, number = loads[0]
        parts[number].append(slice_)
        heapq.heapreplace(loads, (size_bytes + slice_.size_bytes, number))
    return [tuple(part) for part in parts]


def handed_over(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """A batch in Spark's types, in pieces that the JVM has room for."""
    pieces = -(-batch.nbytes // BATCH_BYTES)
    length = -(-batch.num_rows // max(pieces, 1))
    for start in range(0, batch.num_rows, max(length, 1)):
        yield batch.slice(start, length).cast(schema)
