"""An index of record keys, made once and asked for many batches of other keys.

Arrow's own lookup builds its hash table anew for every call, which costs more than the lookup when
batches are small. Here keys lie in buckets by the first bits of their hashes, and a bitmap of some
more bits turns most strangers away before a bucket is looked at.

Hashing of record keys, many at once: 64 bits from eight bytes of every key at a time.

Key places: in which row groups of a base file a record key can be, known after the first look.

The first lookup in a file reads all of its keys and keeps four bytes of each key's hash, so that
the next one reads only row groups that can have one of its keys. What is kept is bounded for the
whole process, and belongs to a file's footer, in which the bloom filter tells other keys.
"""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.kernel.caches import ByteBounded

# Rows hashed together; their intermediate values should stay in the processor's cache.
_WINDOW_ROWS = 1 << 16
_WORD_BYTES = 8
_WORD = np.dtype("<u8")
# The fractional part of the golden ratio: odd, and its bits are well mixed.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MIX_SHIFT = np.uint64(29)
_ALL_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)
_BYTE_BITS = np.uint64(8)


def hash_keys(keys: pa.Array) -> np.ndarray:
    """One hash per key of a text or binary array; equal keys have equal hashes.

    Only the bytes of a key and their order matter, not the array's type. It is no cryptographic
    hash: callers compare the keys as well.
    """
    windows = [
        _hash_window(keys.slice(start, _WINDOW_ROWS)) for start in range(0, len(keys), _WINDOW_ROWS)
    ]
    return np.concatenate([np.zeros(0, dtype=np.uint64), *windows])


def repeated(hashes: np.ndarray) -> np.ndarray:
    """The hashes that occur more than once, ascending: without any, all keys are distinct."""
    ordered = np.sort(hashes)
    return np.asarray(ordered[1:][ordered[1:] == ordered[:-1]])


def _hash_window(keys: pa.Array) -> np.ndarray:
    kind = keys.type
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    _, offsets, content = keys.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64 if wide else np.int32)
    bounds = bounds[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    octets = np.frombuffer(content if content is not None else b"", dtype=np.uint8)
    lengths = np.diff(bounds)
    size = int(lengths[0])
    if size >= _WORD_BYTES and (lengths == size).all():
        return _hash_matrix(octets[bounds[0] : bounds[-1]].reshape(len(keys), size))
    # A word may begin at the first byte of the shortest key at the end.
    padded = np.concatenate([octets[bounds[0] : bounds[-1]], np.zeros(_WORD_BYTES, np.uint8)])
    return _hash_words(padded, bounds[:-1] - bounds[0], lengths)


def _hash_words(octets: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Hashes of keys of any lengths; behind the last one are eight bytes more."""
    words: np.ndarray = np.ndarray(
        (len(octets) - _WORD_BYTES + 1,), dtype=_WORD, buffer=octets, strides=(1,)
    )
    state = lengths.astype(np.uint64) * _MULTIPLIER
    for place in range(0, max(int(lengths.max()) - _WORD_BYTES, 0), _WORD_BYTES):
        longer = lengths > place + _WORD_BYTES
        if longer.all():
            state = _mixed(state, words[starts + place])
        else:
            rows = np.flatnonzero(longer)
            state[rows] = _mixed(state[rows], words[starts[rows] + place])
    # The last word ends where the key ends, so it may overlap the one before it.
    last = words[starts + np.maximum(lengths - _WORD_BYTES, 0)]
    missing = np.maximum(_WORD_BYTES - lengths, 0).astype(np.uint64)
    if missing.any():
        # A shift by a whole word is none.
        last = np.where(lengths > 0, last & (_ALL_BITS >> (missing * _BYTE_BITS)), 0)
    return _mixed(state, last)


def _hash_matrix(octets: np.ndarray) -> np.ndarray:
    """Hashes of keys of one length of a word or more, one key per row."""
    count, size = octets.shape
    state = np.full(count, size, dtype=np.uint64) * _MULTIPLIER
    content = np.ascontiguousarray(octets)
    for place in (*range(0, size - _WORD_BYTES, _WORD_BYTES), size - _WORD_BYTES):
        words: np.ndarray = np.ndarray(
            (count,), dtype=_WORD, buffer=content, offset=place, strides=(size,)
        )
        state = _mixed(state, words)
    return state


def _mixed(state: np.ndarray, words: np.ndarray) -> np.ndarray:
    state = (state ^ words) * _MULTIPLIER
    return np.asarray(state ^ (state >> _MIX_SHIFT))


# Rows looked up together; their intermediate values should stay in the processor's cache.

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


KEPT_BYTES_MAX = 48 << 20
# Each of few keys is compared with all hashes; for more a bitmap of their first bits comes first.
_COMPARED_MAX = 8
_BITMAP_BITS = 20
_PLACE_BITS = 32
_PLACE_SHIFT = np.uint32(_PLACE_BITS - _BITMAP_BITS)

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
        self._bitmap[self._wanted >> _PLACE_SHIFT] = True

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
        found = np.flatnonzero(self._bitmap[hashes >> _PLACE_SHIFT])
        own = hashes[found]
        last = len(wanted) - 1
        places: Positions = found[wanted[np.minimum(np.searchsorted(wanted, own), last)] == own]
        return places


def _hashes(keys: pa.Array) -> Hashes:
    if pa.types.is_dictionary(keys.type):
        keys = keys.dictionary_decode()
    return (hash_keys(keys) >> np.uint64(_PLACE_BITS)).astype(np.uint32)
