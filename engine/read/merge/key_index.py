"""An index of record keys, made once and asked for many batches of other keys.

Arrow's own lookup builds its hash table anew for every call, which costs more than the lookup when
batches are small. Here keys lie in buckets by the first bits of their hashes, and a bitmap of some
more bits turns most strangers away before a bucket is looked at.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.read.merge.key_hash import hash_keys

# Rows looked up together; their intermediate values should stay in the processor's cache.
_WINDOW_ROWS = 1 << 16
_HASH_BITS = 64
_MOST_BUCKET_BITS = 22
# The bitmap has eight places for each bucket.
_BITMAP_BITS_MORE = 3

KeyHash = Callable[[pa.Array], np.ndarray]


class KeyIndex:
    """Finds keys among distinct, non-null keys; what it finds is exact, whatever the hash.

    Who has the keys' hashes spares making them again.
    """

    def __init__(
        self, keys: pa.Array, hashed: KeyHash = hash_keys, hashes: np.ndarray | None = None
    ) -> None:
        bits = min(len(keys).bit_length() + 1, _MOST_BUCKET_BITS)
        self._keys = keys
        self._hashed = hashed
        self._bucket_shift = np.uint64(_HASH_BITS - bits)
        self._bitmap_shift = np.uint64(_HASH_BITS - bits - _BITMAP_BITS_MORE)
        hashes = hashed(keys) if hashes is None else hashes
        # Which of two equal hashes comes first does not matter, and a stable sort takes four times.
        self._order = np.argsort(hashes)
        self._hashes = hashes[self._order]
        sizes = np.bincount((hashes >> self._bucket_shift).astype(np.int64), minlength=1 << bits)
        # Bucket n holds the places from the n-th bound to before the next.
        self._bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        self._bitmap = np.zeros(1 << (bits + _BITMAP_BITS_MORE), dtype=bool)
        self._bitmap[hashes >> self._bitmap_shift] = True

    def find(self, keys: pa.Array | pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
        """Which of the keys are in the index, ascending, and at which places of it."""
        chunks = keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]
        nothing = np.zeros(0, dtype=np.int64)
        ats, founds, start = [nothing], [nothing], 0
        for chunk in chunks:
            for first in range(0, len(chunk), _WINDOW_ROWS):
                at, found = self._find(_plain(chunk.slice(first, _WINDOW_ROWS)))
                ats.append(at + (start + first))
                founds.append(found)
            start += len(chunk)
        return np.concatenate(ats), np.concatenate(founds)

    def _find(self, keys: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        hashes = self._hashed(keys)
        at = np.flatnonzero(self._bitmap[hashes >> self._bitmap_shift])
        hashes = hashes[at]
        bucket = (hashes >> self._bucket_shift).astype(np.int64)
        place, end = self._bounds[bucket], self._bounds[bucket + 1]
        ats, candidates = [at[:0]], [self._order[:0]]
        # Each round looks at one more key of the buckets that are not yet exhausted.
        while len(live := np.flatnonzero(place < end)):
            at, place, end, hashes = at[live], place[live], end[live], hashes[live]
            hits = np.flatnonzero(self._hashes[place] == hashes)
            ats.append(at[hits])
            candidates.append(self._order[place[hits]])
            place = place + 1
        return self._equal(keys, np.concatenate(ats), np.concatenate(candidates))

    def _equal(
        self, keys: pa.Array, at: np.ndarray, candidates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Those of the pairs in which the keys are equal, and not only their hashes."""
        equal = self._are_equal(keys, at, candidates)
        at, candidates = at[equal], candidates[equal]
        ascending = np.argsort(at)
        return at[ascending], candidates[ascending]

    def _are_equal(self, keys: pa.Array, at: np.ndarray, candidates: np.ndarray) -> np.ndarray:
        theirs = keys.take(pa.array(at))
        mine = self._keys.take(pa.array(candidates)).cast(keys.type)
        return np.asarray(pc.equal(theirs, mine).fill_null(False), dtype=bool)


def _plain(keys: pa.Array) -> pa.Array:
    return keys.dictionary_decode() if pa.types.is_dictionary(keys.type) else keys
