"""Explanations: what a read touches and what it skips, with the reason for each thing skipped."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.kernel.shown import Row, ShownRows
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.read.query.answer import IndexUse, Scan
from lakewarden.engine.read.query.prune import SkippedPart
from lakewarden.engine.storage.port import Storage


@dataclass(frozen=True, slots=True)
class RowGroups:
    """How many row groups of a slice's base file are read, of how many."""

    slice_: FileSlice
    read_count: int
    total_count: int

    @property
    def skipped_count(self) -> int:
        return self.total_count - self.read_count


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(ShownRows):
    """A scan in words: slices read, partitions, file groups and row groups skipped."""

    scan: Scan
    row_groups: tuple[RowGroups, ...]

    @property
    def slices(self) -> tuple[FileSlice, ...]:
        return self.scan.slices

    @property
    def skipped(self) -> tuple[SkippedPart, ...]:
        return self.scan.skipped

    @property
    def indexes(self) -> tuple[IndexUse, ...]:
        """The indexes that the filter concerns, and what became of each."""
        return self.scan.indexes

    @property
    def partitions_skipped_count(self) -> int:
        return sum(item.file_id is None for item in self.skipped)

    @property
    def file_groups_skipped_count(self) -> int:
        return sum(item.file_id is not None for item in self.skipped)

    @property
    def row_groups_skipped_count(self) -> int:
        return sum(groups.skipped_count for groups in self.row_groups)

    def rows(self) -> Iterator[dict[str, str | None]]:
        """One row for each slice that is read and for each thing that is not."""
        for groups in self.row_groups:
            slice_ = groups.slice_
            reason = f"{len(slice_.log_files)} log files, {slice_.size_bytes} bytes"
            if groups.skipped_count:
                skipped = f"{groups.skipped_count} of {groups.total_count} row groups"
                reason += f"; {skipped} skipped by their statistics"
            yield _row(slice_.partition, slice_.file_id, "read", reason)
        for item in self.skipped:
            yield _row(item.partition, item.file_id, "skipped", item.reason)
        for use in self.scan.indexes:
            yield _row("", None, "index", str(use))

    def _shown_rows(self) -> Sequence[Row]:
        return list(self.rows())

    def __str__(self) -> str:
        columns = len(self.scan.spec.wanted()), len(self.scan.spec.schema)
        lines = [f"read: {len(self.slices)} slices, {columns[0]} of {columns[1]} columns"]
        partitions = Counter(item.reason for item in self.skipped if item.file_id is None)
        groups = Counter(item.reason for item in self.skipped if item.file_id is not None)
        for what, reasons in (("partitions", partitions), ("file groups", groups)):
            lines += [f"skipped: {count} {what}; {why}" for why, count in sorted(reasons.items())]
        if self.row_groups_skipped_count:
            count = self.row_groups_skipped_count
            lines.append(f"skipped: {count} row groups; their statistics exclude the filter")
        return "\n".join([*lines, *map(str, self.scan.indexes)])


def explain(storage: Storage, scan: Scan) -> Explanation:
    """A scan explained; the footers of the files it reads tell the row groups."""
    reader = SliceReader(storage, scan.spec)
    counted = (RowGroups(slice_, *reader.row_groups(slice_)) for slice_ in scan.slices)
    return Explanation(scan, tuple(counted))


def _row(partition: str, file_id: str | None, verdict: str, reason: str) -> dict[str, str | None]:
    return {"partition": partition, "file_id": file_id, "verdict": verdict, "reason": reason}
