"""Hashing of record keys, many at once: 64 bits from eight bytes of every key at a time."""

import numpy as np
import pyarrow as pa

# Rows hashed together; their intermediate values should stay in the processor's cache.
_WINDOW_ROWS = 1 << 16
_WORD_BYTES = 8
_WORD = np.dtype("<u8")
# The fractional part of the golden ratio: odd, and its bits are well mixed.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
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
    return np.asarray(state ^ (state >> _SHIFT))
