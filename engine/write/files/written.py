"""Written files: what a task hands back about each data file it made."""

from dataclasses import dataclass

import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata.commit import WriteStat
from lakewarden.engine.metadata.entries.changes import NewFile, ValueChange


@dataclass(frozen=True, slots=True, eq=False)
class WrittenFile:
    """One data file: for the commit's metadata, and for the metadata table."""

    key: FileGroupId
    stat: WriteStat
    file: NewFile
    # Keys that came to live in the group with this file, and keys that it lost.
    arrived: pa.StringArray
    left: pa.StringArray
    # What secondary indexes have to learn of the rows.
    valued: tuple[ValueChange, ...] = ()
    # The log of change data beside the file.
    captured: NewFile | None = None

    @property
    def files(self) -> tuple[NewFile, ...]:
        return (self.file,) if self.captured is None else (self.file, self.captured)
