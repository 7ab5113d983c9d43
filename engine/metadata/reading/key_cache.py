"""The key cache: where the keys of a record index live, kept by a process that writes often.

What is kept is what immutable files say: the base file of each file group of the index as sorted
hashes, and on top the log blocks of its slice. A snapshot says which base file and which blocks
count, so that a lookup answers what the index of that snapshot answers, whichever process has
written. Blocks that are new are added; where the list changed otherwise (a rollback, a restore, a
log compaction) the blocks are read again, and with another base file (a compaction, a new build)
that as well.

A key is known by 128 bits of its hash under a secret seed; its text is not compared. Files in which
two keys share them are not kept, so that no key is taken for another of the same file. That two of
five million keys share them is to be expected once in 10^25 tables.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from secrets import randbits

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from xxhash import xxh3_128_digest

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.log.block import Block
from lakewarden.engine.metadata.encoding.records import Run, decode_runs
from lakewarden.engine.metadata.reading.file_group import ALL, BaseMark, MetadataFileGroup
from lakewarden.engine.metadata.reading.record_index import RECORD_COLUMN
from lakewarden.engine.metadata.reading.record_locations import RecordLocations, locations_of

# A hash, and the number of a home.
KEY_BYTES = 20
# About what the name of a home takes.
_HOME_BYTES = 300
_HASH_BYTES = 16
_WORD = np.dtype(">u8")
_REMOVED, _UNKNOWN = -1, -2

Numbers = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]
Hashes = Callable[[pa.LargeBinaryArray], tuple[Words, Words]]


@dataclass(frozen=True, slots=True, eq=False)
class SortedKeys:
    """Distinct hashes in ascending order, in two halves, with the number of the home of each."""

    high: Words
    low: Words
    homes: Numbers

    @classmethod
    def of(cls, high: Words, low: Words, homes: Numbers) -> "SortedKeys":
        """The keys in order; of those that come again the last counts."""
        # Parts that are in order are merged, which is quicker than sorting by both halves.
        order = np.argsort(high, kind="stable")
        is_tie = high[order[1:]] == high[order[:-1]]
        if (is_tie & (low[order[1:]] != low[order[:-1]])).any():
            order = np.lexsort((low, high))
            is_tie = high[order[1:]] == high[order[:-1]]
        kept = order
        if is_tie.any():
            is_same = is_tie & (low[order[1:]] == low[order[:-1]])
            kept = order[np.append(~is_same, True)]
        return cls(high[kept], low[kept], homes[kept])

    def __len__(self) -> int:
        return len(self.high)

    @property
    def size_bytes(self) -> int:
        return self.high.nbytes + self.low.nbytes + self.homes.nbytes

    def find(self, high: Words, low: Words) -> Numbers:
        """The number of the home of each hash; those that are not here have _UNKNOWN."""
        found = np.full(len(high), _UNKNOWN, np.int32)
        if not len(self):
            return found
        # Neighbours in the questions are neighbours in memory.
        waiting = np.argsort(high)
        at = np.searchsorted(self.high, high[waiting])
        while len(waiting):
            inside = at < len(self)
            waiting, at = waiting[inside], at[inside]
            # Hashes may share their first half: they follow each other.
            alike = self.high[at] == high[waiting]
            waiting, at = waiting[alike], at[alike]
            is_hit = self.low[at] == low[waiting]
            found[waiting[is_hit]] = self.homes[at[is_hit]]
            waiting, at = waiting[~is_hit], at[~is_hit] + 1
        return found


_NO_WORDS = np.zeros(0, np.uint64)
_NO_KEYS = SortedKeys(_NO_WORDS, _NO_WORDS, np.zeros(0, np.int32))


def _together(parts: Sequence[SortedKeys]) -> SortedKeys:
    """All as one, given oldest first: of what several know of a key, the newest counts."""
    filled = [one for one in parts if len(one)]
    if len(filled) < 2:
        return filled[0] if filled else _NO_KEYS
    return SortedKeys.of(
        np.concatenate([one.high for one in filled]),
        np.concatenate([one.low for one in filled]),
        np.concatenate([one.homes for one in filled]),
    )


class _Alike(Exception):
    """Hashes do not tell the keys of a file apart."""


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """A file group as one snapshot shows it."""

    mark: BaseMark
    hashes: Hashes
    base: SortedKeys = _NO_KEYS
    # What the blocks say on top, and which blocks these are.
    newer: SortedKeys = _NO_KEYS
    blocks: tuple[tuple[str, int, str, int], ...] = ()
    homes: tuple[FileGroupId, ...] = ()

    @property
    def size_bytes(self) -> int:
        return self.base.size_bytes + self.newer.size_bytes + _HOME_BYTES * len(self.homes)

    def with_base(self, group: MetadataFileGroup) -> "_Kept":
        """The same with the content of the base file."""
        run = group.base_run(ALL)
        if run is None:
            return self
        numbers: dict[FileGroupId, int] = {}
        base = _sorted(run, self.hashes, numbers)
        return replace(self, base=base, homes=tuple(numbers))

    def caught_up(self, group: MetadataFileGroup) -> "_Kept":
        """The same with the blocks that count now."""
        blocks = group.log_blocks
        now = tuple(map(_identity, blocks))
        if now == self.blocks:
            return self
        goes_on = now[: len(self.blocks)] == self.blocks
        known = len(self.blocks) if goes_on else 0
        numbers = {home: number for number, home in enumerate(self.homes)}
        runs = [group.run_of(one, ALL) for one in blocks[known:]]
        parts = [_sorted(run, self.hashes, numbers) for run in runs]
        newer = _together([self.newer if goes_on else _NO_KEYS, *parts])
        return replace(self, newer=newer, blocks=now, homes=tuple(numbers))

    def find(self, keys: pa.LargeBinaryArray) -> RecordLocations:
        high, low = self.hashes(keys)
        at = self.newer.find(high, low)
        rest = np.flatnonzero(at == _UNKNOWN)
        at[rest] = self.base.find(high[rest], low[rest])
        places = np.flatnonzero(at >= 0)
        used, numbers = np.unique(at[places], return_inverse=True)
        texts = keys.take(pa.array(places)).cast(pa.large_string()).cast(pa.string())
        homes = tuple(self.homes[number] for number in used.tolist())
        return RecordLocations(texts, numbers.astype(np.int64), homes)


def _sorted(run: Run, hashes: Hashes, numbers: dict[FileGroupId, int]) -> SortedKeys:
    """What a run says; homes that have no number yet get the next ones."""
    homes = np.full(len(run.keys), _REMOVED, np.int32)
    if run.values is not None and len(homes):
        found = locations_of(decode_runs([run], [RECORD_COLUMN]))
        own = [numbers.setdefault(home, len(numbers)) for home in found.homes]
        homes = np.array(own, np.int32)[found.at]
    known = SortedKeys.of(*hashes(run.keys), homes)
    if len(known) < len(run.keys):
        raise _Alike
    return known


class KeyCache:
    """The file groups of one table's record index that are kept, in a bounded number of bytes.

    A file group that does not fit is not kept: none makes room for another, for a batch has keys of
    all of them. Each base file is read at most once, and so is one that turns out not to fit.
    What is kept of a file group is replaced as a whole, so that threads may ask at the same time.
    """

    def __init__(self, hashes: Hashes | None = None) -> None:
        self._hashes = hashes or partial(_hashes, seed=randbits(64))
        self._kept: dict[str, _Kept] = {}
        # By file group: what was not kept, and what the bound was then.
        self._left_out: dict[str, tuple[BaseMark, int]] = {}
        self.bytes_max = 0

    @property
    def size_bytes(self) -> int:
        return sum(one.size_bytes for one in list(self._kept.values()))

    def within(self, bytes_max: int) -> "KeyCache | None":
        """The cache with a bound; none with a bound of nothing."""
        self.bytes_max = bytes_max
        if not bytes_max:
            self._kept.clear()
        return self if bytes_max else None

    def keep_only(self, groups: Sequence[MetadataFileGroup]) -> None:
        """Forget file groups that the index has not any more."""
        present = {one.path for one in groups}
        for path in set(self._kept) - present:
            self._kept.pop(path, None)

    def locate(self, group: MetadataFileGroup, keys: pa.LargeBinaryArray) -> RecordLocations | None:
        """The locations of those keys that a file group has; None if it is not kept."""
        mark = group.base_mark
        if mark is None:
            return None
        try:
            kept = self._current(group, mark)
        except _Alike:
            kept = None
        if kept is None or self.size_bytes > self.bytes_max:
            self._leave_out(group, mark)
        return None if kept is None else kept.find(keys)

    def _current(self, group: MetadataFileGroup, mark: BaseMark) -> _Kept | None:
        """A file group as it is now; its base file is read if it is another and there is room."""
        kept = self._kept.get(group.path)
        if kept is None or kept.mark != mark:
            self._kept.pop(group.path, None)
            is_left_out = self._left_out.get(group.path) == (mark, self.bytes_max)
            if is_left_out or self.size_bytes + KEY_BYTES * group.base_entries > self.bytes_max:
                return None
            kept = _Kept(mark, self._hashes).with_base(group)
        kept = kept.caught_up(group)
        self._kept[group.path] = kept
        return kept

    def _leave_out(self, group: MetadataFileGroup, mark: BaseMark) -> None:
        self._kept.pop(group.path, None)
        self._left_out[group.path] = (mark, self.bytes_max)


def _identity(block: Block) -> tuple[str, int, str, int]:
    return block.path, block.offset, block.instant, len(block.content)


def _hashes(keys: pa.LargeBinaryArray, seed: int) -> tuple[Words, Words]:
    digest = partial(xxh3_128_digest, seed=seed)
    octets = b"".join(map(digest, keys.to_pylist()))
    assert len(octets) == _HASH_BYTES * len(keys)
    words = np.frombuffer(octets, _WORD).reshape(-1, 2)
    return words[:, 0].astype(np.uint64), words[:, 1].astype(np.uint64)
