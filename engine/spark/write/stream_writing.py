"""Streaming in workers: each task makes new file groups of the rows it has, and nothing moves."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.index.incoming import rows_by_partition
from lakewarden.engine.kernel.ids import SystemIds
from lakewarden.engine.spark.workers.keying import task_context
from lakewarden.engine.spark.workers.reports import Batches, reported
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.write.distributed_rows import DistributedWrite, RowPreparation
from lakewarden.engine.write.files.spec import GroupTask, WrittenFile
from lakewarden.engine.write.routing.sizes import SizeLimits, measured_record_bytes

# What a task holds before it makes a file that is smaller than asked for.
HELD_BYTES_MAX = 512 << 20
# Each file of a write has a number, and so many tasks can have files of their own.
TASKS_MAX = 100_000


@dataclass(frozen=True, slots=True)
class StreamWriting:
    """Makes files of rows as they come."""

    location: Location
    preparation: RowPreparation
    job: DistributedWrite

    def __call__(self, batches: Batches) -> Batches:
        return reported(lambda: self._written(batches))

    def _written(self, batches: Batches) -> Iterator[WrittenFile]:
        held = _Held(self)
        for batch in batches:
            if batch.num_rows:
                held.add(self.preparation.fit(pa.Table.from_batches([batch])))
                yield from held.full_files()
        yield from held.rest()


class _Held:
    """Rows that wait for their file to be large enough, by partition."""

    def __init__(self, writing: StreamWriting) -> None:
        self._writing = writing
        self._storage = open_storage(writing.location)
        self._limits: SizeLimits | None = None
        self._waiting: dict[str, list[pa.Table]] = {}
        self._counts: dict[str, int] = {}
        self._bytes: dict[str, int] = {}
        self._files = 0

    def add(self, rows: KeyedRows) -> None:
        if self._limits is None:
            self._limits = self._limits_by(rows)
        for path, places in rows_by_partition(rows).items():
            part = rows.take(places[~rows.is_delete[places]])
            if len(part):
                table = part.rows.append_column(_KEY, part.keys)
                self._waiting.setdefault(path, []).append(table)
                self._counts[path] = self._counts.get(path, 0) + len(part)
                self._bytes[path] = self._bytes.get(path, 0) + table.nbytes

    def full_files(self) -> Iterator[WrittenFile]:
        assert self._limits is not None
        for path in [*self._counts]:
            while self._counts.get(path, 0) >= self._limits.rows_per_file:
                yield self._file(path, self._limits.rows_per_file)
        while sum(self._bytes.values()) > HELD_BYTES_MAX:
            path = max(self._bytes, key=self._bytes.__getitem__)
            yield self._file(path, self._counts[path])

    def rest(self) -> Iterator[WrittenFile]:
        for path in sorted(self._counts):
            yield self._file(path, self._counts[path])

    def _file(self, path: str, count: int) -> WrittenFile:
        table = pa.concat_tables(self._waiting.pop(path))
        left = table.slice(count)
        del self._counts[path], self._bytes[path]
        if len(left):
            self._waiting[path] = [left]
            self._counts[path], self._bytes[path] = len(left), left.nbytes
        rows = _keyed(table.slice(0, count).combine_chunks(), path)
        context = task_context()
        number = context.partitionId() + TASKS_MAX * self._files
        self._files += 1
        everything = np.ones(count, np.bool_)
        key = FileGroupId(path, f"{SystemIds().fresh()}-0")
        task = GroupTask(key, None, number, rows, everything, ~everything)
        return self._writing.job.write_file(self._storage, task, int(context.taskAttemptId()))

    def _limits_by(self, rows: KeyedRows) -> SizeLimits:
        job = self._writing.job
        if not job.measures:
            return job.limits
        size_bytes = rows.rows.nbytes + rows.keys.nbytes
        measured = measured_record_bytes(size_bytes, row_count=len(rows))
        return replace(job.limits, record_bytes=measured)


_KEY = "_lakewarden_key"


def _keyed(table: pa.Table, path: str) -> KeyedRows:
    count = len(table)
    codes = pa.array(np.zeros(count, np.int32))
    nothing = np.zeros(count, np.bool_)
    return KeyedRows(
        table.drop_columns([_KEY]),
        table.column(_KEY).combine_chunks(),
        pa.DictionaryArray.from_arrays(codes, pa.array([path])),
        nothing,
        nothing,
    )
