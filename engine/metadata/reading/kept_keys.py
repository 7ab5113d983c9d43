"""Kept keys: what one file group of a record index says, as sorted hashes.

A key is known by 128 bits of its hash under a secret seed; its text is not compared. Files in which
two keys share them are not kept, so that no key is taken for another of the same file. That two of
five million keys share them is to be expected once in 10^25 tables.

Key snapshots: what a process keeps of a record index, saved for the next process.

One file for each file group, which is put in its place as a whole. It says which base file of which
table it is of, and carries a checksum; a file that is damaged, or of another form, is no snapshot.
It is no part of the table: whatever is amiss with it costs time only.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from xxhash import xxh3_128_digest, xxh3_128_hexdigest

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.hashing import Words, xxh3_128
from lakewarden.engine.formats.log.block import Block
from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.kernel.events import Event, EventSink
from lakewarden.engine.metadata.encoding.records import Run, decode_runs
from lakewarden.engine.metadata.reading.partition import ALL, BaseMark, MetadataFileGroup
from lakewarden.engine.metadata.reading.record_index import (
    RECORD_COLUMN,
    RecordLocations,
    locations_of,
)
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage

# A hash, and the number of a home.
KEY_BYTES = 20
# About what the name of a home takes.
_HOME_BYTES = 300
_REMOVED, _UNKNOWN = -1, -2
_WORD_BITS = 64
# About so many keys share the first bits of their hashes.
_RANGE_KEYS = 32
_TIMES_AS_LARGE = 8
# Entries that tell whether values come again.
_SAMPLE = 4096

Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Hashes:
    """128 bits of each key, in two halves, under a seed."""

    seed: int = field(repr=False)

    def __call__(self, keys: pa.LargeBinaryArray) -> tuple[Words, Words]:
        return xxh3_128(keys, self.seed)


@dataclass(frozen=True, slots=True, eq=False)
class SortedKeys:
    """Distinct hashes in ascending order, in two halves, with the number of the home of each."""

    high: Words
    low: Words
    homes: Numbers
    # Where those begin that share their first bits, and how often such a range can be halved.
    starts: Numbers = field(init=False)
    halvings: int = field(init=False)

    def __post_init__(self) -> None:
        bits = max((len(self.high) // _RANGE_KEYS).bit_length(), 1)
        firsts = np.arange(1 << bits, dtype=np.uint64) << np.uint64(_WORD_BITS - bits)
        starts = np.append(np.searchsorted(self.high, firsts), len(self.high)).astype(np.int32)
        object.__setattr__(self, "starts", starts)
        object.__setattr__(self, "halvings", int(np.diff(starts).max()).bit_length())

    @classmethod
    def of(cls, high: Words, low: Words, homes: Numbers, *, in_parts: bool = False) -> "SortedKeys":
        """The keys in order; of those that come again in parts, each in order, the last counts."""
        # Parts that are in order are merged, which is quicker than sorting by both halves.
        order = np.argsort(high, kind="stable" if in_parts else None)
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
        return self.high.nbytes + self.low.nbytes + self.homes.nbytes + self.starts.nbytes

    def only(self, chosen: npt.NDArray[np.bool_]) -> "SortedKeys":
        if chosen.all():
            return self
        return SortedKeys(self.high[chosen], self.low[chosen], self.homes[chosen])

    def find(self, high: Words, low: Words) -> Numbers:
        """The number of the home of each hash; those that are not here have _UNKNOWN."""
        found = np.full(len(high), _UNKNOWN, np.int32)
        if not len(self):
            return found
        waiting, at = np.arange(len(high)), self._first_from(high)
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

    def _first_from(self, high: Words) -> npt.NDArray[np.int64]:
        """The places of the first hashes that are not below those asked for.

        Each question halves its range in the same step: one after the other waits for memory.
        """
        bits = (len(self.starts) - 1).bit_length() - 1
        ranges = (high >> np.uint64(_WORD_BITS - bits)).astype(np.int64)
        first, last = self.starts[ranges], self.starts[ranges + 1]
        for _ in range(self.halvings):
            middle = (first + last) >> 1
            is_below = self.high.take(middle, mode="clip") < high
            is_below &= first < last
            first = np.where(is_below, middle + 1, first)
            last = np.where(is_below, last, middle)
        return first.astype(np.int64)


_NO_WORDS = np.zeros(0, np.uint64)
NO_KEYS = SortedKeys(_NO_WORDS, _NO_WORDS, np.zeros(0, np.int32))


def _together(parts: Sequence[SortedKeys]) -> SortedKeys:
    """All as one, given oldest first: of what several know of a key, the newest counts."""
    filled = [one for one in parts if len(one)]
    if len(filled) < 2:
        return filled[0] if filled else NO_KEYS
    return SortedKeys.of(
        np.concatenate([one.high for one in filled]),
        np.concatenate([one.low for one in filled]),
        np.concatenate([one.homes for one in filled]),
        in_parts=True,
    )


def _piled(pile: Sequence[SortedKeys], added: Sequence[SortedKeys]) -> tuple[SortedKeys, ...]:
    """Parts on a pile, where each is much larger than the one on top of it.

    So a small part is never merged with all that is there, and a lookup asks few.
    """
    kept = list(pile)
    for part in added:
        while kept and len(kept[-1]) < _TIMES_AS_LARGE * len(part):
            part = _together([kept.pop(), part])
        kept.append(part)
    return tuple(kept)


class Alike(Exception):
    """Hashes do not tell the keys of a file apart."""


# A block of a log: path, offset, instant and size.
BlockId = tuple[str, int, str, int]


@dataclass(frozen=True, slots=True, eq=False)
class KeptKeys:
    """The keys of a file group as one snapshot shows it."""

    mark: BaseMark
    hashes: Hashes
    # What the base file says: `base` as it was read, and on top what compactions have added.
    base: SortedKeys = NO_KEYS
    folded: SortedKeys = NO_KEYS
    # How many of these are not removals.
    live: int = 0
    # What the blocks say on top: a few that are merged of them, oldest first, and each.
    newer: tuple[SortedKeys, ...] = ()
    parts: tuple[SortedKeys, ...] = ()
    blocks: tuple[BlockId, ...] = ()
    homes: tuple[FileGroupId, ...] = ()
    size_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        # One part alone is all together, too.
        kept = {id(one): one for one in (self.base, self.folded, *self.newer, *self.parts)}
        size = sum(one.size_bytes for one in kept.values()) + _HOME_BYTES * len(self.homes)
        object.__setattr__(self, "size_bytes", size)

    @property
    def added_share(self) -> float:
        """How much compactions have added, beside what was there."""
        return len(self.folded) / max(len(self.base), 1)

    def with_base(self, group: MetadataFileGroup) -> "KeptKeys":
        """The same with the content of the base file."""
        run = group.base_run(ALL)
        if run is None:
            return self
        numbers: dict[FileGroupId, int] = {}
        base = _sorted(run, self.hashes, numbers)
        return replace(self, base=base, live=len(base), homes=tuple(numbers))

    def caught_up(self, group: MetadataFileGroup) -> "KeptKeys":
        """The same with the blocks that count now."""
        blocks = group.log_blocks
        now = tuple(map(_identity, blocks))
        if now == self.blocks:
            return self
        numbers = {home: number for number, home in enumerate(self.homes)}
        known = dict(zip(self.blocks, self.parts, strict=True))
        parts = tuple(
            known[name] if name in known else _sorted(group.run_of(one, ALL), self.hashes, numbers)
            for name, one in zip(now, blocks, strict=True)
        )
        goes_on = now[: len(self.blocks)] == self.blocks
        known_of, added = (self.newer, parts[len(self.blocks) :]) if goes_on else ((), parts)
        newer = _piled(known_of, added)
        return replace(self, newer=newer, parts=parts, blocks=now, homes=tuple(numbers))

    def compacted(self, below: MetadataFileGroup, mark: BaseMark) -> "KeptKeys":
        """The same on top of the base file that a compaction has made of the slice it shows."""
        slice_ = self.caught_up(below)
        own = _together(slice_.newer)
        was_live = _find([slice_.folded, slice_.base], own.high, own.low) >= 0
        later = [
            (name, part)
            for name, part in zip(self.blocks, self.parts, strict=True)
            if name not in slice_.blocks
        ]
        parts = tuple(part for _, part in later)
        return replace(
            slice_,
            mark=mark,
            folded=_together([slice_.folded, own]),
            live=slice_.live + int((own.homes >= 0).sum()) - int(was_live.sum()),
            newer=_piled((), parts),
            parts=parts,
            blocks=tuple(name for name, _ in later),
        )

    def merged(self) -> "KeptKeys":
        """The same with one array for all that the base file says."""
        if not len(self.folded):
            return self
        base = _together([self.base, self.folded])
        return replace(self, base=base.only(base.homes >= 0), folded=NO_KEYS)._renumbered()

    def _renumbered(self) -> "KeptKeys":
        """The same without the names of homes that no key has any more, if these are many."""
        used = np.zeros(len(self.homes), np.bool_)
        for keys in (self.base, *self.newer, *self.parts):
            used[keys.homes[keys.homes >= 0]] = True
        if 2 * used.sum() > len(used):
            return self
        # The last place is for removals, which have the number -1.
        numbers = np.append(np.cumsum(used, dtype=np.int32) - 1, np.int32(_REMOVED))
        base, newer, parts = (
            tuple(replace(one, homes=numbers[one.homes]) for one in kept)
            for kept in ((self.base,), self.newer, self.parts)
        )
        homes = tuple(home for home, is_used in zip(self.homes, used, strict=True) if is_used)
        return replace(self, base=base[0], newer=newer, parts=parts, homes=homes)

    def find(self, keys: pa.LargeBinaryArray) -> RecordLocations:
        at = _find([*reversed(self.newer), self.folded, self.base], *self.hashes(keys))
        places = np.flatnonzero(at >= 0)
        used, numbers = np.unique(at[places], return_inverse=True)
        texts = keys.take(pa.array(places)).cast(pa.large_string()).cast(pa.string())
        homes = tuple(self.homes[number] for number in used.tolist())
        return RecordLocations(texts, numbers.astype(np.int64), homes)


def _find(parts: Sequence[SortedKeys], high: Words, low: Words) -> Numbers:
    """What the first of some parts that knows a key says of it."""
    at = parts[0].find(high, low)
    for part in parts[1:]:
        rest = np.flatnonzero(at == _UNKNOWN)
        at[rest] = part.find(high[rest], low[rest])
    return at


def _sorted(run: Run, hashes: Hashes, numbers: dict[FileGroupId, int]) -> SortedKeys:
    """What a run says; homes that have no number yet get the next ones."""
    homes = np.full(len(run.keys), _REMOVED, np.int32)
    if run.values is not None and len(homes):
        distinct, at = _distinct_values(run)
        found = locations_of(decode_runs([distinct], [RECORD_COLUMN]))
        own = [numbers.setdefault(home, len(numbers)) for home in found.homes]
        homes = np.array(own, np.int32)[found.at[at]]
    known = SortedKeys.of(*hashes(run.keys), homes)
    if len(known) < len(run.keys):
        raise Alike
    return known


def _distinct_values(run: Run) -> tuple[Run, npt.NDArray[np.int64] | slice]:
    """A run with each value once, and which of them each entry has.

    Entries of one file group and write are the same bytes, so that few need be decoded.
    """
    assert run.values is not None
    sample = run.values.slice(0, _SAMPLE)
    if 2 * len(sample.unique()) > len(sample):
        return run, slice(None)
    encoded = run.values.dictionary_encode()
    values = encoded.dictionary
    return replace(run, keys=run.keys.slice(0, len(values)), values=values), np.asarray(
        encoded.indices, np.int64
    )


def _identity(block: Block) -> BlockId:
    return block.path, block.offset, block.instant, len(block.content)


_MAGIC = b"LWKEYS01"
_SUM_BYTES = 16
_ALIGNED = 8


@dataclass(frozen=True, slots=True)
class KeySnapshots:
    """The snapshots of one table, in a storage of their own."""

    storage: Storage = field(compare=False)
    # Where the storage is, and the table: both as addresses.
    folder: str
    table: str
    events: EventSink = field(compare=False, repr=False)

    def load(self, group: str) -> KeptKeys | None:
        """What was saved of a file group; None without a whole snapshot of this very one."""
        try:
            content = self.storage.read_if_present(self._path(group))
        except LakewardenError as error:
            self._report(error)
            return None
        return None if content is None else _decoded(content, self.table, group)

    def save(self, group: str, kept: KeptKeys) -> bool:
        """Save what the base file of a file group says; whether that has worked."""
        payload = b"".join(_encoded(kept, self.table, group))
        try:
            self.storage.put(self._path(group), payload)
        except LakewardenError as error:
            self._report(error)
            return False
        return True

    def _path(self, group: str) -> str:
        return f"{xxh3_128_hexdigest(self.table.encode())}/{group}.keys"

    def _report(self, error: LakewardenError) -> None:
        self.events(Event("key_snapshot_failed", {"folder": self.folder, "reason": error.why}))


def snapshots_in(folder: str, table: Location, events: EventSink) -> KeySnapshots | None:
    """The snapshots of a table in a folder, which is reached as the table is; none without one."""
    if not folder:
        return None
    # What is lost is read once more.
    storage = open_storage(Location(folder, {**table.options, "durable": False}))
    return KeySnapshots(storage, folder, table.uri, events)


def _encoded(kept: KeptKeys, table: str, group: str) -> Iterator[bytes]:
    created_ms = kept.mark.created_ms
    said = {
        "table": table,
        "group": group,
        "mark": asdict(kept.mark) | {"created_ms": created_ms and created_ms.hex()},
        "seed": kept.hashes.seed,
        "keys": len(kept.base),
        "homes": [[home.partition, home.file_id] for home in kept.homes],
    }
    text = json.dumps(said).encode()
    text += b" " * (-len(text) % _ALIGNED)
    parts = [_MAGIC, len(text).to_bytes(_ALIGNED, "little"), text]
    parts += [part.tobytes() for part in (kept.base.high, kept.base.low, kept.base.homes)]
    yield from parts
    yield xxh3_128_digest(b"".join(parts))


def _decoded(content: bytes, table: str, group: str) -> KeptKeys | None:
    """What a whole file says that this version has written; the checksum vouches for the rest."""
    whole, at = len(content) - _SUM_BYTES, len(_MAGIC) + _ALIGNED
    if whole < at or not content.startswith(_MAGIC):
        return None
    view = memoryview(content)
    if xxh3_128_digest(view[:whole]) != content[whole:]:
        return None
    end = at + int.from_bytes(content[len(_MAGIC) : at], "little")
    said = json.loads(content[at:end])
    if (said["table"], said["group"]) != (table, group):
        return None
    count, created_ms = said["keys"], said["mark"]["created_ms"]
    mark = BaseMark(**said["mark"] | {"created_ms": created_ms and bytes.fromhex(created_ms)})
    words = np.frombuffer(content, np.uint64, 2 * count, end)
    homes = np.frombuffer(content, np.int32, count, end + words.nbytes)
    return KeptKeys(
        mark,
        Hashes(said["seed"]),
        base=SortedKeys(words[:count], words[count:], homes),
        live=count,
        homes=tuple(FileGroupId(partition, file_id) for partition, file_id in said["homes"]),
    )
