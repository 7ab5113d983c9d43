"""Candidates: file slices that a compaction could take, with the figures that it chooses by."""

from dataclasses import dataclass

from lakewarden.engine.file_groups.planned_slices import io_megabytes, operation_of
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.instant_metadata.compaction import CompactionOperation


@dataclass(frozen=True, slots=True)
class Candidate:
    """A slice with logs; one without a base file is expected to become a file of full size."""

    slice: FileSlice
    new_base_bytes: int

    @property
    def log_bytes(self) -> int:
        return sum(log.size_bytes for log in self.slice.log_files)

    @property
    def io_mb(self) -> int:
        return io_megabytes(self.slice, self.new_base_bytes)

    @property
    def operation(self) -> CompactionOperation:
        return operation_of(self.slice, self.new_base_bytes)
