"""Hadoop's murmur hash over many keys at once, chained: each hash is the seed of the next."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.formats.octets import Octets, Offsets, octets_of

Hashes = npt.NDArray[np.uint32]

_M = np.uint32(0x5BD1E995)
_R = 24
_WORD = 0xFFFF_FFFF
# A pass over the words of so few keys costs more than plain numbers do.
_FEW_KEYS = 4


class MurmurChain:
    """The hashes of some keys, one round after the other.

    Keys are ordered by falling number of 4-byte words, so that the keys that have an n-th word are
    the first ones, and each round is one pass over the words. What only a few keys go on with, as
    very long ones do, is hashed key by key. The mixing of a word does not depend on the seed and is
    done once. Bytes behind the last whole word are taken from the end of the
    key and sign-extended: that is Hadoop's reading of the algorithm.
    """

    def __init__(self, keys: pa.LargeBinaryArray) -> None:
        octets, bounds = octets_of(keys)
        starts, lengths = bounds[:-1], np.diff(bounds)
        words = lengths >> 2
        self.order = np.argsort(-words, kind="stable")
        starts, lengths, words = starts[self.order], lengths[self.order], words[self.order]
        self._lengths = lengths.astype(np.uint32)
        self._tails = _tails(octets, starts + lengths, lengths & 3)
        self._tail_factors = np.where(lengths & 3, _M, np.uint32(1))
        common = int(words[_FEW_KEYS]) if len(words) > _FEW_KEYS else 0
        counts = np.searchsorted(-words, -np.arange(common), "left")
        self._words = [
            _mixed(_words_at(octets, starts[:count] + 4 * index))
            for index, count in enumerate(counts.tolist())
        ]
        self._rests: list[list[int]] = [
            _mixed(_words_at(octets, start + 4 * np.arange(common, count))).tolist()
            for start, count in zip(starts[:_FEW_KEYS], words[:_FEW_KEYS].tolist(), strict=True)
            if count > common
        ]
        self._seeds = np.zeros(len(lengths), np.uint32)

    def next_round(self) -> Hashes:
        """The next hash of each key, in the order of `order`."""
        hashes = self._seeds ^ self._lengths
        for words in self._words:
            head = hashes[: len(words)]
            head *= _M
            head ^= words
        for place, rest in enumerate(self._rests):
            hashes[place] = _through(rest, int(hashes[place]))
        hashes ^= self._tails
        hashes *= self._tail_factors
        hashes ^= hashes >> 13
        hashes *= _M
        hashes ^= hashes >> 15
        self._seeds = hashes
        return hashes

    def keep(self, keys: Offsets) -> None:
        """Go on with some of the keys only; ascending numbers of places in `order`."""
        self.order = self.order[keys]
        self._lengths, self._tails = self._lengths[keys], self._tails[keys]
        self._tail_factors, self._seeds = self._tail_factors[keys], self._seeds[keys]
        self._words = [words[keys[: np.searchsorted(keys, len(words))]] for words in self._words]
        kept = keys[: np.searchsorted(keys, len(self._rests))]
        self._rests = [self._rests[key] for key in kept.tolist()]


def _through(words: list[int], seed: int) -> int:
    """The hash after the mixed words of one key."""
    factor, hashed = int(_M), seed
    for word in words:
        hashed = (hashed * factor & _WORD) ^ word
    return hashed


def _mixed(words: Hashes) -> Hashes:
    words *= _M
    words ^= words >> _R
    words *= _M
    return words


def _words_at(octets: Octets, positions: Offsets) -> Hashes:
    """The little-endian words at any positions, aligned or not."""
    windows: Hashes = np.ndarray((max(len(octets) - 3, 0),), "<u4", octets, 0, (1,))
    return windows[positions].astype(np.uint32)


def _tails(octets: Octets, ends: Offsets, sizes: Offsets) -> Hashes:
    signed = octets.view(np.int8)
    tails = np.zeros(len(ends), np.int32)
    for distance in (1, 2, 3):
        rows = np.flatnonzero(sizes >= distance)
        tails[rows] ^= signed[ends[rows] - distance].astype(np.int32) << (8 * (distance - 1))
    return tails.view(np.uint32)
