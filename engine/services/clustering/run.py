"""Clustering: one task makes the new files of some slices, by copying or by encoding."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from lakewarden.engine.metadata.reading.column_range import ColumnRange
from lakewarden.engine.metadata.reading.column_stats import column_ranges
from lakewarden.engine.metadata.reading.table import COLUMN_STATS
from lakewarden.engine.services.clustering.copy import copy_file, copyable
from lakewarden.engine.services.clustering.encode import encode_files
from lakewarden.engine.services.clustering.tasks import ClusterSpec, ClusterTask, NanNotes
from lakewarden.engine.services.execution.task_context import FencedTaskContext
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.write.files.spec import WriteSpec
from lakewarden.engine.write.files.written import WrittenFile


@dataclass(frozen=True, slots=True, eq=False)
class ClusteringWork:
    """Makes the files of a task; it travels to other processes."""

    spec: ClusterSpec

    def __call__(self, place: FencedTaskContext, task: ClusterTask) -> tuple[WrittenFile, ...]:
        # What the files before have taken goes back to the system.
        pa.default_memory_pool().release_unused()
        write = replace(self.spec.write, task_attempt=place.task_attempt)
        spec = replace(self.spec, write=write)
        source = copyable(place, spec, task)
        if source is not None:
            return (copy_file(place, spec, task, source),)
        return tuple(encode_files(place, spec, task))


def with_nan_notes(
    state: Snapshot, spec: WriteSpec, tasks: Iterable[ClusterTask]
) -> tuple[ClusterTask, ...]:
    """The tasks, with what the metadata table tells of NaN in the files they may copy."""
    tasks = tuple(tasks)
    own = spec.schema.columns
    floats = [
        name
        for name in spec.summarised
        if name in own.names and pa.types.is_floating(own.field(name).type)
    ]
    copied = [task for task in tasks if not task.has_logs]
    if not floats or not copied:
        return tasks
    ranges = {}
    if state.config.has_metadata(COLUMN_STATS):
        partitions = sorted({task.partition for task in copied})
        statistics = state.metadata.partition(COLUMN_STATS)
        ranges = column_ranges(statistics, floats, partitions)
    return tuple(
        task if task.has_logs else replace(task, nan=_notes(task, floats, ranges)) for task in tasks
    )


def _notes(
    task: ClusterTask,
    floats: list[str],
    ranges: dict[str, dict[str, dict[str, ColumnRange]]],
) -> NanNotes:
    by_file = ranges.get(task.partition, {})
    known: set[str] = set()
    unknown: dict[str, tuple[str, ...]] = {}
    for slice_ in task.slices:
        assert slice_.base_file is not None
        reported = by_file.get(slice_.base_file.name, {})
        answers = {name: _has_nan(reported.get(name)) for name in floats}
        known |= {name for name, answer in answers.items() if answer}
        unknown[slice_.base_file.name] = tuple(
            name for name, answer in answers.items() if answer is None
        )
    return NanNotes(frozenset(known), unknown)


def _has_nan(range_: ColumnRange | None) -> bool | None:
    """Whether a column has a NaN, as far as its statistics tell.

    Java writes 0.0 in the place of bounds where there is one.
    """
    if range_ is None or range_.is_unknown:
        return None
    if range_.is_all_null:
        return False
    assert range_.minimum is not None
    assert range_.maximum is not None
    low, high = range_.minimum.as_py(), range_.maximum.as_py()
    if not isinstance(low, float) or not isinstance(high, float):
        return None
    if math.isnan(high):
        return True
    return None if 0.0 in (low, high) else False
