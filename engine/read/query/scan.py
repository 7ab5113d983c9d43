"""Scans: which slices a query reads, and what it leaves out and why."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.read.merge.slice_reader import SliceReader, side_by_side
from lakewarden.engine.read.merge.spec import ReadSpec
from lakewarden.engine.read.query.prune import SkippedPart
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.storage.port import Storage


class PlannedAnswer(Protocol):
    """A planned query of any kind: rows that can be read."""

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the rows."""
        ...

    def table(self, storage: Storage, executor: Executor) -> pa.Table:
        """All rows."""
        ...

    def batches(self, storage: Storage) -> Iterator[pa.RecordBatch]:
        """All rows, batch after batch."""
        ...


@dataclass(frozen=True, slots=True)
class IndexUse:
    """What an index did for a read: how much it skipped, or why it was not asked."""

    index: str
    skipped_count: int
    reason: str | None = None
    what: str = "file groups"

    def __str__(self) -> str:
        if self.reason is not None:
            return f"the index {self.index} was not used: {self.reason}"
        return f"the index {self.index} skipped {self.skipped_count} {self.what}"


@dataclass(frozen=True, slots=True)
class Scan:
    """A planned query: the slices to read, how, and everything that need not be read."""

    slices: tuple[FileSlice, ...]
    skipped: tuple[SkippedPart, ...]
    spec: ReadSpec
    # The indexes that the filter concerns.
    indexes: tuple[IndexUse, ...] = ()

    @property
    def output_schema(self) -> pa.Schema:
        return self.spec.output_schema

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
