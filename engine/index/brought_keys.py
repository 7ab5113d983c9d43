"""Brought keys: where the keys stand that another write's commit has brought to the table.

With a record index these are the entries in that commit's deltacommit of the metadata table.
Without one, or once the deltacommit is gone, they are in the data files that the commit names.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from lakewarden.engine.conflicts.touched_groups import is_service
from lakewarden.engine.file_groups.file_names import BaseFile, LogFile, parse_file_name
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, WriteStat
from lakewarden.engine.formats.instant_metadata.commit import decode as decode_commit
from lakewarden.engine.formats.instant_metadata.replace import decode as decode_replace
from lakewarden.engine.index.bloom import possible_by_footer
from lakewarden.engine.index.key_file import key_columns
from lakewarden.engine.index.new_keys import NewKeys
from lakewarden.engine.index.slice_keys import Search, SliceKeys
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.metadata.reading.arrivals import Arrivals, IndexLog
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.timeline.active import ActiveTimeline
from lakewarden.engine.timeline.instants.instant import Action, Instant

_GONE = "missing_file"


@dataclass(frozen=True, slots=True)
class Brought:
    """The files that show which keys a commit has brought: those of the index, or its own."""

    instant: Instant
    data: tuple[FileSlice, ...] = ()
    index: tuple[IndexLog, ...] | None = None

    @property
    def files(self) -> tuple[FileSlice | IndexLog, ...]:
        return self.data if self.index is None else self.index

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class FoundKeys:
    """A key that two writes have brought."""

    key: str
    partition: str | None


class BroughtKeys:
    """Looks into the commits of others for new keys; made anew for each look at the timeline."""

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        active: ActiveTimeline,
        executor: Executor,
        *,
        asks_index: bool,
    ) -> None:
        self._storage = storage
        self._active = active
        self._executor = executor
        self._asks_index = asks_index
        self._slice_keys = SliceKeys(storage, key_columns(config), possible_by_footer)

    def of(self, instant: Instant, new: NewKeys) -> Brought:
        """What has to be read of a commit; nothing of a service, which brings no keys."""
        metadata = _metadata(self._active, instant)
        if is_service(instant, metadata):
            return Brought(instant)
        stats = [stat for group in metadata.partition_to_write_stats.values() for stat in group]
        data = tuple(
            slice_
            for slice_ in map(_slice, stats)
            if slice_ is not None and new.of(slice_.partition) is not None
        )
        index = self._indexed(instant, stats, new) if self._asks_index and data else None
        return Brought(instant, data, index)

    def find(self, brought: Brought, new: NewKeys) -> FoundKeys | None:
        """One of the new keys that the commit has brought, too; `missing_file` if it is unknown."""
        if brought.index is None:
            return self._first(brought.data, new)
        try:
            return next(self._in_index(brought.index, new), None)
        except CorruptTable as error:
            if error.code != _GONE:
                raise
            # The metadata table was compacted and cleaned since.
            return self._first(brought.data, new)

    @cached_property
    def _arrivals(self) -> Arrivals:
        return Arrivals(self._storage)

    def _indexed(
        self, instant: Instant, stats: list[WriteStat], new: NewKeys
    ) -> tuple[IndexLog, ...] | None:
        """The logs of the index; None where they may lack the commit, whose files are then read."""
        logs = self._arrivals.logs_of(instant.requested)
        if not logs and any(stat.num_inserts for stat in stats):
            return None
        if logs is None:
            return None
        return tuple(
            log for log in logs if log.partition is None or new.of(log.partition) is not None
        )

    def _first(self, slices: tuple[FileSlice, ...], new: NewKeys) -> FoundKeys | None:
        asked = [(one, wanted) for one in slices if (wanted := new.of(one.partition)) is not None]
        searches = [Search(slice_, wanted) for slice_, wanted in asked]
        places = self._executor.map(self._slice_keys.find, searches)
        for (slice_, wanted), found in zip(asked, places, strict=True):
            if len(found):
                return FoundKeys(wanted.keys[int(found[0])].as_py(), slice_.partition)
        return None

    def _in_index(self, logs: tuple[IndexLog, ...], new: NewKeys) -> Iterator[FoundKeys]:
        for log in logs:
            wanted = new.of(log.partition or "")
            if wanted is None:
                continue
            found = wanted.found(self._arrivals.keys(log))
            if len(found):
                yield FoundKeys(wanted.keys[int(found[0])].as_py(), log.partition)


def _metadata(active: ActiveTimeline, instant: Instant) -> CommitMetadata:
    decode = decode_replace if instant.action is Action.REPLACE_COMMIT else decode_commit
    return decode(active.read(instant), active.path(instant))


def _slice(stat: WriteStat) -> FileSlice | None:
    """The file of a stat as a slice of its own."""
    partition, name = stat.partition_path or "", (stat.path or "").rpartition("/")[2]
    file = parse_file_name(name, stat.file_size_in_bytes)
    match file:
        case BaseFile():
            return FileSlice(partition, file.file_id, file.instant, file)
        case LogFile(is_cdc=False):
            return FileSlice(partition, file.file_id, file.instant, None, (file,))
    return None
