"""Key places: in which row groups of a base file a record key can be, known after the first look.

The first lookup in a file reads all of its keys and keeps four bytes of each key's hash, so that
the next one reads only row groups that can have one of its keys. What is kept is bounded for the
whole process, and belongs to a file's footer, in which the bloom filter tells other keys.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.kernel.byte_bounded import ByteBounded
from lakewarden.engine.read.merge.key_hash import hash_keys

KEPT_BYTES_MAX = 48 << 20
# Each of few keys is compared with all hashes; for more a bitmap of their first bits comes first.
_COMPARED_MAX = 8
_BITMAP_BITS = 20
_HASH_BITS = 32
_SHIFT = np.uint32(_HASH_BITS - _BITMAP_BITS)

Hashes = npt.NDArray[np.uint32]
Positions = npt.NDArray[np.int64]


# The hashes of the keys of files, by what identifies a file.
KEY_PLACES: ByteBounded[Hashes] = ByteBounded(KEPT_BYTES_MAX)


def hashes_of(parts: Iterable[pa.Array]) -> Hashes:
    """Four bytes of the hash of each key."""
    found = [_hashes(part) for part in parts]
    return np.concatenate([np.zeros(0, np.uint32), *found])


class HashedKeys:
    """Some keys, hashed once for all files that are asked for them."""

    def __init__(self, keys: pa.Array) -> None:
        self.keys = keys
        self._wanted = np.unique(_hashes(keys))
        self._bitmap = np.zeros(1 << _BITMAP_BITS, np.bool_)
        self._bitmap[self._wanted >> _SHIFT] = True

    def __len__(self) -> int:
        return len(self.keys)

    def places(self, hashes: Hashes) -> Positions:
        """The positions at which one of the keys may be, ascending; no such position is missing."""
        wanted = self._wanted
        if len(wanted) <= _COMPARED_MAX:
            is_there = np.zeros(len(hashes), np.bool_)
            for one in wanted:
                is_there |= hashes == one
            return np.flatnonzero(is_there)
        found = np.flatnonzero(self._bitmap[hashes >> _SHIFT])
        own = hashes[found]
        last = len(wanted) - 1
        places: Positions = found[wanted[np.minimum(np.searchsorted(wanted, own), last)] == own]
        return places


def _hashes(keys: pa.Array) -> Hashes:
    if pa.types.is_dictionary(keys.type):
        keys = keys.dictionary_decode()
    return (hash_keys(keys) >> np.uint64(_HASH_BITS)).astype(np.uint32)
