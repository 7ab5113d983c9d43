"""Written files: what a task hands back about each data file it made."""

from dataclasses import dataclass

import pyarrow as pa

from lakewarden.engine.formats.payloads.commit import WriteStat
from lakewarden.engine.metadata.changes import NewFile
from lakewarden.engine.view.slices import SliceKey


@dataclass(frozen=True, slots=True, eq=False)
class WrittenFile:
    """One data file: for the commit's metadata, and for the metadata table."""

    key: SliceKey
    stat: WriteStat
    file: NewFile
    # Keys that came to live in the group with this file, and keys that it lost.
    arrived: pa.StringArray
    left: pa.StringArray
