"""The key cache: where the keys of a record index live, kept by a process that writes often.

What is kept is what immutable files say: the base file of each file group of the index as sorted
hashes, and on top the log blocks of its slice. A snapshot says which base file and which blocks
count, so that a lookup answers what the index of that snapshot answers, whichever process has
written. Blocks that are new are added, those that are gone are dropped.

A compaction of the index changes no entry. Its base file is taken for what is kept where the plan
of the completed compaction names the very slice that is kept, where all of that slice is there and
counts, and where the base file has as many entries. Any other base file (of a new build, after a
restore, of a compaction with writes that were rolled back since) is read.

A process that starts may find the base files of some moment in snapshots; what has come since is
added in the same way. What a snapshot is of it says by the very marks of these files.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from secrets import randbits

import pyarrow as pa

from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.metadata.reading.kept_keys import (
    KEY_BYTES,
    Alike,
    Hashes,
    KeptKeys,
    KeySnapshots,
)
from lakewarden.engine.metadata.reading.partition import BaseMark, MetadataFileGroup, read_ahead
from lakewarden.engine.metadata.reading.record_index import RecordLocations
from lakewarden.engine.run.executor import Executor

# What compactions have added is merged with the rest once it is such a share of it.
_ADDED_SHARE = 1 / 64


@dataclass(slots=True)
class Lookups:
    """The keys that a batch has looked up, how many of them the cache answered for, and how many
    the table has."""

    asked: int = 0
    cached: int = 0
    found: int = 0


class KeyCache:
    """The file groups of one table's record index that are kept, in a bounded number of bytes.

    A file group that does not fit is not kept: none makes room for another, for a batch has keys of
    all of them. Each base file is read at most once, and so is one that turns out not to fit.
    What is kept of a file group is replaced as a whole, so that threads may ask at the same time.
    """

    def __init__(self, hashes: Hashes | None = None) -> None:
        self._hashes = hashes or Hashes(randbits(64))
        self._kept: dict[str, KeptKeys] = {}
        # By file group: what was not kept, and what the bound was then.
        self._left_out: dict[str, tuple[BaseMark, int]] = {}
        self.bytes_max = 0
        self.lookups = Lookups()
        self._snapshots: KeySnapshots | None = None
        # By file group: the base file that the snapshot is of, None for one that could not be made.
        self._saved: dict[str, BaseMark | None] = {}
        # Those that were read since the last tidying.
        self._arrived: set[str] = set()

    @property
    def size_bytes(self) -> int:
        return sum(one.size_bytes for one in list(self._kept.values()))

    def within(self, bytes_max: int, snapshots: KeySnapshots | None = None) -> "KeyCache | None":
        """The cache with a bound, and where its snapshots lie; none with a bound of nothing."""
        self.bytes_max, self.lookups = bytes_max, Lookups()
        if snapshots != self._snapshots:
            self._snapshots, self._saved = snapshots, {}
        if not bytes_max:
            self._kept.clear()
        return self if bytes_max else None

    def prepare(self, groups: Sequence[MetadataFileGroup], executor: Executor) -> None:
        """Forget file groups that the index has not any more; read new ones side by side.

        Where not all have room, `locate` reads them in their order until there is none.
        """
        present = {one.path for one in groups}
        for path in set(self._kept) - present:
            self._kept.pop(path, None)
        new = [one for one in groups if one.path not in self._kept]
        if len(new) < 2:
            return
        read_ahead(new)
        entries = sum(one.base_entries for one in new)
        if self.size_bytes + KEY_BYTES * entries <= self.bytes_max:
            list(executor.map(self._current, new))

    def locate(self, group: MetadataFileGroup, keys: pa.LargeBinaryArray) -> RecordLocations | None:
        """The locations of those keys that a file group has; None if it is not kept."""
        kept = self._current(group)
        if kept is None:
            return None
        self.lookups.cached += len(keys)
        return kept.find(keys)

    def tidy(self) -> None:
        """Merge what compactions have added, and save what snapshots do not have yet.

        Those file groups that were just read, and one more: so no batch has to wait for all.
        """
        unsaved = sorted(path for path in self._kept if not self._is_saved(path))
        for path in [path for path in unsaved if path in self._arrived] or unsaved[:1]:
            self._save(path)
        self._arrived.clear()
        if unsaved:
            return
        shares = {path: kept.added_share for path, kept in sorted(self._kept.items())}
        path = max(shares, key=shares.__getitem__, default="")
        if shares.get(path, 0) > _ADDED_SHARE:
            self._kept[path] = self._kept[path].merged()

    def _is_saved(self, path: str) -> bool:
        """Whether there is nothing to save of a file group; one without base file is all logs."""
        mark = self._kept[path].mark
        if self._snapshots is None or not mark.path:
            return True
        return path in self._saved and self._saved[path] in (mark, None)

    def _save(self, path: str) -> None:
        assert self._snapshots is not None
        kept = self._kept[path] = self._kept[path].merged()
        self._saved[path] = kept.mark if self._snapshots.save(path, kept) else None

    def _current(self, group: MetadataFileGroup) -> KeptKeys | None:
        """A file group as it is now; its base file is read if it is another and there is room."""
        mark = group.base_mark
        if mark is None:
            return None
        try:
            kept = self._brought_on(group, mark) or self._read(group, mark)
            kept = None if kept is None else kept.caught_up(group)
        except Alike:
            kept = None
        if kept is not None:
            self._kept[group.path] = kept
        if kept is None or self.size_bytes > self.bytes_max:
            self._kept.pop(group.path, None)
            self._left_out[group.path] = (mark, self.bytes_max)
        return kept

    def _brought_on(self, group: MetadataFileGroup, mark: BaseMark) -> KeptKeys | None:
        """What is kept of a file group, if that says what its base file of now says."""
        known = self._kept.get(group.path)
        if known is not None:
            return _on(known, group, mark)
        if self._snapshots is None or group.path in self._saved or not self._has_room(group, mark):
            return None
        self._arrived.add(group.path)
        saved = self._snapshots.load(group.path)
        if saved is None:
            return None
        self._saved[group.path] = saved.mark
        return _on(saved, group, mark)

    def _read(self, group: MetadataFileGroup, mark: BaseMark) -> KeptKeys | None:
        if not self._has_room(group, mark):
            return None
        self._arrived.add(group.path)
        return KeptKeys(mark, self._hashes).with_base(group)

    def _has_room(self, group: MetadataFileGroup, mark: BaseMark) -> bool:
        is_left_out = self._left_out.get(group.path) == (mark, self.bytes_max)
        needed = self.size_bytes + KEY_BYTES * group.base_entries
        return not is_left_out and needed <= self.bytes_max


def _on(kept: KeptKeys, group: MetadataFileGroup, mark: BaseMark) -> KeptKeys | None:
    """What is kept on top of the base file of now, if compactions have made it of what is kept.

    What the slices below are read for is not needed: one that goes meanwhile is not known.
    """
    if kept.mark == mark:
        return kept
    try:
        below = group.below
        below_mark = None if below is None else below.base_mark
        if below is None or below_mark is None:
            return None
        lower = _on(kept, below, below_mark)
        if lower is None or not below.counts_whole():
            return None
        upper = lower.compacted(below, mark)
    except CorruptTable:
        return None
    return upper if upper.live == group.base_entries else None
