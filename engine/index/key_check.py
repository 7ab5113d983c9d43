"""The key check: whether others have brought a key meanwhile that a write took for new.

Two writes that bring one key have no file group in common. The one that commits second finds out
here: it looks at every commit since its snapshot, and at each only once. It is made under the lock,
where others wait, so that it reads little there; what is more is read without the lock first.

New keys: those that a write has taken for new, by the partitions that it put them into.

Brought keys: where the keys stand that another write's commit has brought to the table.

With a record index these are the entries in that commit's deltacommit of the metadata table.
Without one, or once the deltacommit is gone, they are in the data files that the commit names.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.conflicts.conflicts import AGAIN, ObservedInstants, completed_since
from lakewarden.engine.conflicts.touched_groups import is_service
from lakewarden.engine.file_groups.file_names import BaseFile, LogFile, parse_file_name
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, WriteStat
from lakewarden.engine.formats.instant_metadata.commit import decode as decode_commit
from lakewarden.engine.formats.instant_metadata.replace import decode as decode_replace
from lakewarden.engine.index.incoming import distinct_keys, rows_by_partition
from lakewarden.engine.index.locate import possible_by_footer
from lakewarden.engine.index.slice_keys import Search, SliceKeys, WantedKeys, key_columns
from lakewarden.engine.kernel.clock import Clock
from lakewarden.engine.kernel.errors import Conflict, CorruptTable
from lakewarden.engine.metadata.reading.arrivals import Arrivals, IndexLog
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.timeline.instants.instant import Action, Instant
from lakewarden.engine.timeline.timeline import ActiveTimeline

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NewKeys:
    """Some rows of a write, whose keys no other write may bring at the same time.

    With an index over all partitions a key is one wherever it is, otherwise in its partition. The
    keys are copied and hashed when they are first looked for, which is seldom.
    """

    rows: KeyedRows
    places: Places
    is_global: bool

    def of(self, partition: str) -> WantedKeys | None:
        """The keys that may not be in a partition; None where there are none."""
        return self._by_partition.get("" if self.is_global else partition)

    def __bool__(self) -> bool:
        return bool(len(self.places))

    def beside(self, others: KeyedRows, *, are_global: bool) -> "NewKeys":
        """These keys, and all of others that come without rows."""
        mine = replace(self.rows, rows=pa.table({}))
        places = np.concatenate([np.arange(len(others)), self.places + len(others)])
        return NewKeys(others.followed_by(mine), places, is_global=self.is_global or are_global)

    @cached_property
    def _by_partition(self) -> Mapping[str, WantedKeys]:
        if self.is_global:
            return {"": WantedKeys(distinct_keys(self.rows.keys, self.places).keys)}
        new = KeyedRows(
            pa.table({}),
            self.rows.keys.take(pa.array(self.places)),
            self.rows.partitions.take(pa.array(self.places)),
            self.rows.is_delete[self.places],
            self.rows.is_unconditional[self.places],
        )
        return {
            partition: WantedKeys(distinct_keys(new.keys, places).keys)
            for partition, places in rows_by_partition(new).items()
        }


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


# What is read under the lock at most; seconds are asked for between two commits.
FILES_MAX = 8
BYTES_MAX = 32 << 20
SECONDS_MAX = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """What a key check reads with."""

    storage: Storage
    config: TableConfig
    executor: Executor
    clock: Clock
    # The write has found its keys by the record index, so that the index knows those of others.
    asks_index: bool


class KeyCheck:
    """The check of one write, from its snapshot to its commit."""

    def __init__(self, witness: Witness, new: NewKeys, since: ObservedInstants, mine: str) -> None:
        self._witness = witness
        self._new = new
        self._since = since
        self._mine = mine
        self._looked_at: set[tuple[str, str]] = set()
        self._active: ActiveTimeline | None = None

    def passes_briefly(self, active: ActiveTimeline) -> bool:
        """Check what was committed meanwhile; False if others would wait too long.

        Raises `write_conflict` where another write has brought one of the keys.
        """
        self._active = active
        return self._pass(active, _Budget(self._witness.clock, is_bounded=True))

    def read_on(self) -> None:
        """Look at all the rest of what the last look has shown, however long it takes."""
        assert self._active is not None
        self._pass(self._active, _Budget(self._witness.clock, is_bounded=False))

    def _pass(self, active: ActiveTimeline, budget: "_Budget") -> bool:
        commits = completed_since(self._since, active)
        fresh = [one for one in commits if one.key not in self._looked_at]
        others = self._others(active)
        for instant in fresh:
            brought = others.of(instant, self._new)
            if not budget.allows(brought):
                return False
            found = _found(others, brought, self._new, self._mine)
            if found is not None:
                raise _key_conflict(self._mine, instant, found)
            self._looked_at.add(instant.key)
        return True

    def _others(self, active: ActiveTimeline) -> BroughtKeys:
        witness = self._witness
        return BroughtKeys(
            witness.storage,
            witness.config,
            active,
            witness.executor,
            asks_index=witness.asks_index,
        )


class _Budget:
    """What may still be read in one look."""

    def __init__(self, clock: Clock, *, is_bounded: bool) -> None:
        self._clock = clock
        self._is_bounded = is_bounded
        self._began = clock.elapsed_seconds()
        self._files = 0
        self._bytes = 0

    def allows(self, brought: Brought) -> bool:
        self._files += len(brought.files)
        self._bytes += brought.size_bytes
        is_late = self._clock.elapsed_seconds() - self._began > SECONDS_MAX
        is_much = self._files > FILES_MAX or self._bytes > BYTES_MAX or is_late
        return not (self._is_bounded and is_much)


def _found(others: BroughtKeys, brought: Brought, new: NewKeys, mine: str) -> FoundKeys | None:
    try:
        return others.find(brought, new)
    except CorruptTable as error:
        if error.code != _GONE:
            raise
        raise _unknown_keys(mine, brought.instant) from error


def too_many_commits(mine: str) -> Conflict:
    """The error of a write that others commit beside faster than it can look at their keys."""
    return Conflict(
        "write_conflict",
        what=f"The write {mine} could not check the keys that other writers committed.",
        why="Other writers kept committing more than it may read under the lock.",
        now=AGAIN,
        instant=mine,
    )


def _key_conflict(mine: str, other: Instant, found: FoundKeys) -> Conflict:
    name = f"{other.action.value} {other.requested}"
    place = f" in partition {found.partition!r}" if found.partition else ""
    return Conflict(
        "write_conflict",
        what=f"The write {mine} conflicts with the {name}, which inserted the record "
        f"key {found.key!r}{place}.",
        why="Both writes insert this key, and a table has each key once.",
        now=AGAIN,
        instant=other.requested,
        action=other.action.value,
        partition=found.partition,
        key=found.key,
    )


def _unknown_keys(mine: str, other: Instant) -> Conflict:
    name = f"{other.action.value} {other.requested}"
    return Conflict(
        "write_conflict",
        what=f"The write {mine} could not read the keys of the {name}.",
        why="Files of that commit are gone, as after a clean.",
        now=AGAIN,
        instant=other.requested,
        action=other.action.value,
    )
