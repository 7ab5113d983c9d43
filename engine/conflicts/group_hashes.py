"""Group hashes: the file groups that a write is about to touch, quick to compare.

Every write names them in its inflight file. Of many names the hashes are kept beside its
heartbeats, sorted, so that a look costs one small read however many there are; what two writes have
in common is then looked up by name. A bloom filter of them may come before the hashes.
"""

import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from lakewarden.engine.conflicts.conflicts import ConflictStrategy
from lakewarden.engine.conflicts.touched_groups import Precedence
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.bloom import build_bloom, parse_bloom
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.heartbeats import BEATS_FOLDER

# Up to so many names, reading the inflight file is as quick.
NAMES_MAX = 128

_HEAD = struct.Struct("<8sQ")
# The last letter tells which write stays.
_MAGICS = {b"LWGROUPI": Precedence.INSTANT, b"LWGROUPF": Precedence.FIRST}
_BLOOM_FALSE_POSITIVES = 1e-3

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class GroupHashes:
    """Names of file groups, and their hashes in order."""

    groups: tuple[FileGroupId, ...]
    hashes: Hashes

    @classmethod
    def of(cls, groups: Collection[FileGroupId], strategy: ConflictStrategy) -> Self:
        """Of bucket tables those of the buckets."""
        texts = [hashed_text(strategy.identity(key)) for key in groups]
        hashes = np.fromiter(map(xxhash.xxh3_64_intdigest, texts), np.uint64, len(texts))
        order = np.argsort(hashes, kind="stable")
        named = tuple(groups)
        return cls(tuple(named[place] for place in order), hashes[order])

    def among(self, others: Hashes) -> tuple[FileGroupId, ...]:
        """Those that the others may have as well: surely all that they have."""
        if not len(others) or not self.groups:
            return ()
        places = np.minimum(np.searchsorted(others, self.hashes), len(others) - 1)
        return tuple(self.groups[at] for at in np.flatnonzero(others[places] == self.hashes))


@dataclass(frozen=True, slots=True, eq=False)
class AnnouncedHashes:
    """The hashes that a write has announced, and which of two writes stays."""

    hashes: Hashes
    precedence: Precedence


def hashed_text(key: FileGroupId) -> bytes:
    """No partition path and no file id has a zero in it, so no two groups share a text."""
    return f"{key.partition}\0{key.file_id}".encode()


def hashes_path(instant: str) -> str:
    return f"{BEATS_FOLDER}/{instant}.hashes"


def bloom_path(instant: str) -> str:
    return f"{BEATS_FOLDER}/{instant}.bloom"


def announcement_paths(instant: str) -> tuple[str, ...]:
    """What an instant may have left there."""
    return hashes_path(instant), bloom_path(instant)


def put_hashes(
    storage: Storage,
    instant: str,
    groups: Collection[FileGroupId],
    strategy: ConflictStrategy,
    precedence: Precedence = Precedence.INSTANT,
    *,
    has_bloom: bool = False,
) -> None:
    """Step `write.announce`: before the inflight file, which says that there is an announcement."""
    if len(groups) <= NAMES_MAX:
        return
    if has_bloom:
        texts = _texts(strategy.identity(key) for key in groups)
        rate = _BLOOM_FALSE_POSITIVES
        bloom = build_bloom(
            texts, type_code="SIMPLE", entries=len(groups), false_positive_rate=rate
        )
        storage.put(bloom_path(instant), bloom.text().encode())
    hashes = GroupHashes.of(groups, strategy).hashes
    magic = next(magic for magic, one in _MAGICS.items() if one is precedence)
    content = _HEAD.pack(magic, len(hashes)) + hashes.astype("<u8").tobytes()
    storage.put(hashes_path(instant), content)


def read_hashes(storage: Storage, instant: str) -> AnnouncedHashes | None:
    """The hashes of an instant; None where it has none, or a crash cut them short."""
    content = storage.read_if_present(hashes_path(instant))
    if content is None or len(content) < _HEAD.size:
        return None
    magic, count = _HEAD.unpack_from(content)
    if magic not in _MAGICS or len(content) != _HEAD.size + 8 * count:
        return None
    hashes = np.frombuffer(content, "<u8", offset=_HEAD.size).astype(np.uint64)
    return AnnouncedHashes(hashes, _MAGICS[magic])


def named_in(
    content: bytes, groups: Iterable[FileGroupId], strategy: ConflictStrategy
) -> tuple[FileGroupId, ...]:
    """Those of some file groups whose file ids, or buckets, stand in an inflight file.

    Asked about groups whose hashes agree, which with the name rules out that they agree by chance,
    and costs a hundredth of decoding the file.
    """
    return tuple(key for key in groups if strategy.identity(key).file_id.encode() in content)


def excluded_by_bloom(
    storage: Storage,
    instant: str,
    groups: Iterable[FileGroupId],
    strategy: ConflictStrategy,
) -> bool:
    """Whether the bloom filter of an instant says that it has none of the file groups."""
    path = bloom_path(instant)
    content = storage.read_if_present(path)
    if content is None:
        return False
    try:
        bloom = parse_bloom(content, "SIMPLE", path)
    except CorruptTable:
        # It was cut short by a crash; the hashes, or the names, tell.
        return False
    texts = _texts(strategy.identity(key) for key in groups)
    return not bloom.might_contain(texts).any()


def _texts(keys: Iterable[FileGroupId]) -> pa.Array:
    return pa.array([hashed_text(key) for key in keys], pa.binary())
