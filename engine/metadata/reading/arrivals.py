"""Arrivals: the keys that a commit has added to the record index, by its own deltacommit alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa

from lakewarden.engine.file_groups.file_names import LogFile, parse_file_name
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.formats.properties import parse_properties
from lakewarden.engine.kernel.errors import corrupt
from lakewarden.engine.metadata.reading.partition import ALL, MetadataFileGroup
from lakewarden.engine.metadata.reading.table import RECORD_INDEX
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import METADATA_FOLDER, PROPERTIES_PATH
from lakewarden.engine.timeline.instants.instant import Action, layout_of
from lakewarden.engine.timeline.timeline import ActiveTimeline, load_active

_SHARD_PREFIX = "record-index-"


@dataclass(frozen=True, slots=True)
class IndexLog:
    """A log of the record index, and the partition of the table that its keys are in.

    The partition is None where the index is one for all of them.
    """

    slice: FileSlice
    partition: str | None

    @property
    def size_bytes(self) -> int:
        return self.slice.size_bytes


class Arrivals:
    """Reads the deltacommits of a metadata table as its timeline shows them when this is made."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage.below(METADATA_FOLDER)
        layout = layout_of(parse_properties(self._storage.read(PROPERTIES_PATH), PROPERTIES_PATH))
        self._active: ActiveTimeline = load_active(self._storage, layout)

    def logs_of(self, instant: str) -> tuple[IndexLog, ...] | None:
        """The logs with the keys of an instant; None if its deltacommit is not there any more."""
        for done in self._active.completed((Action.DELTA_COMMIT,)):
            if done.requested == instant:
                path = self._active.path(done)
                metadata = commit.decode(self._active.read(done), path)
                stats = metadata.partition_to_write_stats.get(RECORD_INDEX, ())
                return tuple(_log(stat.path or "", stat.file_size_in_bytes) for stat in stats)
        return None

    def keys(self, log: IndexLog) -> Iterator[pa.Array]:
        """The keys that a log says the place of; those that it removes are none."""
        group = MetadataFileGroup(self._storage, log.slice, lambda _: True)
        for run in group.runs(ALL):
            if run.values is not None:
                yield run.keys.cast(pa.large_string()).cast(pa.string())


def partition_of_shard(file_id: str) -> str | None:
    """The partition of the table that a file group of a record index is for: its id has the path.

    `record-index-0007-0` is for all; `record-index-<escaped path>-0000-0` is for one partition.
    """
    shard = file_id.rsplit("-", 2)[0]
    return unquote(shard.removeprefix(_SHARD_PREFIX)) if shard.startswith(_SHARD_PREFIX) else None


def _log(path: str, size_bytes: int) -> IndexLog:
    file = parse_file_name(path.rpartition("/")[2], size_bytes)
    if not isinstance(file, LogFile):
        raise corrupt(path, None, "A deltacommit of the metadata table names it as a log.")
    slice_ = FileSlice(RECORD_INDEX, file.file_id, file.instant, None, (file,))
    return IndexLog(slice_, partition_of_shard(file.file_id))
