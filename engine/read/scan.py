"""Scans: which slices a query reads, and what it leaves out and why."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lakewarden.engine.read.prune import LeftOut
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
        """All rows, slices side by side; a lone slice uses the cores for its columns."""
        reader = SliceReader(storage, self.spec)
        alone = len(self.slices) < executor.workers
        tables = executor.map(lambda slice_: reader.table(slice_, use_threads=alone), self.slices)
        return pa.concat_tables([self.spec.output_schema.empty_table(), *tables])

    def batches(self, storage: Storage) -> Iterator[pa.RecordBatch]:
        """All rows, slice after slice, batch after batch."""
        reader = SliceReader(storage, self.spec)
        for slice_ in self.slices:
            yield from reader.batches(slice_)

    def rows(self) -> Iterator[dict[str, str | None]]:
        """What is read and what is not, one row each, for people."""
        for slice_ in self.slices:
            reason = f"{len(slice_.log_files)} log files, {slice_.size_bytes} bytes"
            yield _row(slice_.partition, slice_.file_id, "read", reason)
        for item in self.left_out:
            yield _row(item.partition, item.file_id, "skipped", item.reason)

    def __str__(self) -> str:
        reasons = Counter(item.reason for item in self.left_out)
        lines = [f"{len(self.slices)} slices are read"]
        lines += [f"{count} skipped: {reason}" for reason, count in sorted(reasons.items())]
        return "\n".join(lines)


def _row(partition: str, file_id: str | None, verdict: str, reason: str) -> dict[str, str | None]:
    return {"partition": partition, "file_id": file_id, "verdict": verdict, "reason": reason}
