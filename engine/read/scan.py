"""Scans: which slices a query reads, and what it leaves out and why."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lakewarden.engine.read.prune import LeftOut
from lakewarden.engine.read.rows import side_by_side
from lakewarden.engine.read.slice_reader import SliceReader
from lakewarden.engine.read.spec import ReadSpec
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.view.slices import FileSlice


@dataclass(frozen=True, slots=True)
class Scan:
    """A planned query: the slices to read, how, and everything that need not be read."""

    slices: tuple[FileSlice, ...]
    left_out: tuple[LeftOut, ...]
    spec: ReadSpec

    def table(self, storage: Storage, executor: Executor) -> pa.Table:
        """All rows, slices side by side; few slices share the cores."""
        reader = SliceReader(storage, self.spec)
        each = max(executor.workers // max(len(self.slices), 1), 1)
        tables = executor.map(lambda slice_: reader.table(slice_, workers=each), self.slices)
        return side_by_side(self.spec.output_schema, tables)

    def batches(self, storage: Storage) -> Iterator[pa.RecordBatch]:
        """All rows, slice after slice, batch after batch."""
        reader = SliceReader(storage, self.spec)
        for slice_ in self.slices:
            yield from reader.batches(slice_)
