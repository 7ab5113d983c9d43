"""Bloom filters over record keys, byte for byte as Hudi writes them into its base files.

`DYNAMIC_V0` is a list of plain filters: when the last one has its number of keys, another one is
started, up to a bound; behind it, keys go round all of them. `SIMPLE` is one plain filter.

Hadoop's murmur hash over many keys at once, chained: each hash is the seed of the next.
"""

import base64
import binascii
import math
import struct
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.formats.octets import Octets, Offsets, large_binary, octets_of
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest, corrupt

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


BloomType = Literal["DYNAMIC_V0", "SIMPLE"]

# What Hudi takes unless hoodie.index.bloom.* or hoodie.bloom.index.* say otherwise.
DEFAULT_ENTRIES: Final = 60_000
DEFAULT_FALSE_POSITIVE_RATE: Final = 1e-9
DEFAULT_ENTRIES_MAX: Final = 100_000

# Version, number of hashes, hash type, number of bits; the same before each row of a dynamic one.
_FILTER = struct.Struct(">iibi")
# Keys per row, keys in the last row, number of rows.
_ROWS = struct.Struct(">iii")
_VERSION = -1
_MURMUR = 1
_HASHES_MAX = 1024
_INT_MAX = (1 << 31) - 1
# So many keys that a round of hashing works in the processor's cache.
_CHUNK_KEYS = 1 << 14
_CHUNK_TESTS = 1 << 20
# A filter for less than half of the keys that one is made for is made for its own keys only; its
# file is rewritten with a new filter, so that it needs no room for more. Java reads any size.
_FITTED_SHARE = 2
_FITTED_ENTRIES_MIN = 64


@dataclass(frozen=True, slots=True)
class BloomOptions:
    """The kind and size of new filters."""

    type_code: BloomType = "DYNAMIC_V0"
    entries: int = DEFAULT_ENTRIES
    false_positive_rate: float = DEFAULT_FALSE_POSITIVE_RATE
    entries_max: int = DEFAULT_ENTRIES_MAX
    # Whether filters of files with far fewer keys are smaller.
    is_fitted: bool = False

    def entries_for(self, keys_count: int) -> int:
        """How many keys a filter of so many is made for."""
        if not self.is_fitted or _FITTED_SHARE * keys_count >= self.entries:
            return self.entries
        return min(max(keys_count, _FITTED_ENTRIES_MIN), self.entries)


@dataclass(frozen=True, slots=True, eq=False)
class BloomFilter:
    """A filter; `rows` holds the bits of each plain filter, lowest bit of a byte first."""

    type_code: BloomType
    hash_count: int
    bit_count: int
    rows: npt.NDArray[np.uint8] = field(repr=False)
    row_entries: int = 0
    last_row_entries: int = 0

    def might_contain(self, keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """For each key whether it may have been added; False is certain."""
        binaries = large_binary(keys)
        found = np.zeros(len(binaries), np.bool_)
        chunk = min(_CHUNK_KEYS, _CHUNK_TESTS // len(self.rows) + 1)
        for start in range(0, len(binaries), chunk):
            found[start + self._members(MurmurChain(binaries.slice(start, chunk)))] = True
        return found

    def _members(self, chain: MurmurChain) -> npt.NDArray[np.int64]:
        """Which of the keys have all their bits set in some row."""
        alive = np.ones((len(self.rows), len(chain.order)), np.bool_)
        for _ in range(self.hash_count):
            places = _places(chain.next_round(), self.bit_count)
            bits = self.rows[:, places >> 3] >> (places & 7).astype(np.uint8)
            alive &= (bits & 1).view(np.bool_)
            # At most half of the bits are set, so each round rules out half of the other keys.
            open_keys = np.flatnonzero(alive.any(axis=0))
            if len(open_keys) <= alive.shape[1] // 8:
                chain.keep(open_keys)
                alive = alive[:, open_keys]
        return chain.order[alive.any(axis=0)]

    def text(self) -> str:
        """The filter as the Base64 text that goes to footers and to the metadata table."""
        frame = _FILTER.pack(_VERSION, self.hash_count, _MURMUR, self.bit_count)
        content = b"".join(frame + row.tobytes() for row in self.rows)
        if self.type_code == "DYNAMIC_V0":
            rows = _ROWS.pack(self.row_entries, self.last_row_entries, len(self.rows))
            content = frame + rows + content
        return base64.b64encode(content).decode()


def build_bloom(
    keys: pa.Array | pa.ChunkedArray,
    *,
    type_code: BloomType = "DYNAMIC_V0",
    entries: int = DEFAULT_ENTRIES,
    false_positive_rate: float = DEFAULT_FALSE_POSITIVE_RATE,
    entries_max: int = DEFAULT_ENTRIES_MAX,
) -> BloomFilter:
    """A filter that contains the keys, in the order in which they are written."""
    bit_count, hash_count = _dimensions(entries, false_positive_rate)
    binaries = large_binary(keys)
    row_of_key, row_count = _rows(np.arange(len(binaries)), entries, entries_max)
    if type_code == "SIMPLE":
        row_of_key, row_count = np.zeros(len(binaries), np.int64), 1
    bits = np.zeros((row_count, -(-bit_count // 8) * 8), np.uint8)
    _set_bits(bits, binaries, row_of_key, (hash_count, bit_count))
    rows = np.packbits(bits, axis=1, bitorder="little")
    if type_code == "SIMPLE":
        return BloomFilter(type_code, hash_count, bit_count, rows)
    last_row_entries = len(binaries) - (row_count - 1) * entries
    return BloomFilter(type_code, hash_count, bit_count, rows, entries, last_row_entries)


def extend_bloom(
    bloom: BloomFilter,
    keys: pa.Array | pa.ChunkedArray,
    *,
    entries_max: int = DEFAULT_ENTRIES_MAX,
) -> BloomFilter:
    """A filter that contains the keys besides those it had, as if they had been added at last."""
    if not len(keys):
        return bloom
    binaries = large_binary(keys)
    row_of_key, row_count = np.zeros(len(binaries), np.int64), 1
    if bloom.type_code == "DYNAMIC_V0":
        had = (len(bloom.rows) - 1) * bloom.row_entries + bloom.last_row_entries
        wide_enough = max(entries_max, len(bloom.rows) * bloom.row_entries)
        row_of_key, row_count = _rows(
            had + np.arange(len(binaries)), bloom.row_entries, wide_enough
        )
        row_count = max(row_count, len(bloom.rows))
    had_bits = np.unpackbits(bloom.rows, axis=1, bitorder="little")
    bits = np.zeros((row_count, had_bits.shape[1]), np.uint8)
    bits[: len(had_bits)] = had_bits
    _set_bits(bits, binaries, row_of_key, (bloom.hash_count, bloom.bit_count))
    rows = np.packbits(bits, axis=1, bitorder="little")
    if bloom.type_code == "SIMPLE":
        return replace(bloom, rows=rows)
    last_row_entries = had + len(binaries) - (row_count - 1) * bloom.row_entries
    return replace(bloom, rows=rows, last_row_entries=last_row_entries)


def full_bloom(
    count: int,
    *,
    entries: int = DEFAULT_ENTRIES,
    false_positive_rate: float = DEFAULT_FALSE_POSITIVE_RATE,
    entries_max: int = DEFAULT_ENTRIES_MAX,
) -> BloomFilter:
    """A filter of as many keys as leave hardly a bit unset, with none unset at all.

    It takes no time to make, and rules out no key, as the real one would hardly do either.
    """
    bit_count, hash_count = _dimensions(entries, false_positive_rate)
    row_count = max(-(-entries_max // entries), 1)
    rows = np.full((row_count, -(-bit_count // 8)), 0xFF, np.uint8)
    last_row_entries = max(count - (row_count - 1) * entries, 0)
    return BloomFilter("DYNAMIC_V0", hash_count, bit_count, rows, entries, last_row_entries)


def _set_bits(
    bits: npt.NDArray[np.uint8],
    binaries: pa.LargeBinaryArray,
    row_of_key: npt.NDArray[np.int64],
    dimensions: tuple[int, int],
) -> None:
    """Add keys to the filters in whose rows they belong; there is one byte for each bit."""
    hash_count, bit_count = dimensions
    flat = bits.reshape(-1)
    for start in range(0, len(binaries), _CHUNK_KEYS):
        chain = MurmurChain(binaries.slice(start, _CHUNK_KEYS))
        first_bits = row_of_key[start + chain.order] * bits.shape[1]
        for _ in range(hash_count):
            flat[first_bits + _places(chain.next_round(), bit_count)] = 1


def _dimensions(entries: int, false_positive_rate: float) -> tuple[int, int]:
    """Number of bits and of hashes; in Java's order of operations, so that rounding agrees."""
    if entries < 1 or not 0 < false_positive_rate < 1:
        raise InvalidRequest(
            "impossible_bloom_filter",
            what=(
                f"A bloom filter cannot have {entries} keys at a false positive rate of "
                f"{false_positive_rate}."
            ),
            why="It needs at least one key, and a rate between 0 and 1.",
            now="Correct hoodie.index.bloom.num_entries or hoodie.index.bloom.fpp.",
        )
    bit_count = math.ceil(entries * (-math.log(false_positive_rate) / (math.log(2) * math.log(2))))
    if bit_count > _INT_MAX:
        raise InvalidRequest(
            "impossible_bloom_filter",
            what=f"A bloom filter of {entries} keys would have {bit_count} bits.",
            why="Its size must fit in 32 bits.",
            now="Lower hoodie.index.bloom.num_entries.",
        )
    return bit_count, math.ceil(math.log(2) * bit_count / entries)


def _rows(
    numbers: npt.NDArray[np.int64], entries: int, entries_max: int
) -> tuple[npt.NDArray[np.int64], int]:
    """The row of the keys with these running numbers, and how many rows there are by then."""
    rows_max = max(-(-entries_max // entries), 1)
    capacity = rows_max * entries
    # The first key too many goes to the first row, and so does the next one: Java begins its
    # round only then.
    round_ = np.maximum(numbers - capacity - 1, 0) % rows_max
    rows = np.where(numbers < capacity, numbers // entries, round_)
    count = int(numbers[-1]) + 1 if len(numbers) else 0
    return rows, min(max(-(-count // entries), 1), rows_max)


def _places(hashes: Hashes, bit_count: int) -> npt.NDArray[np.int64]:
    """The bit of each hash: Java's remainder of the signed number, without its sign."""
    # The absolute value of the smallest number is itself, which read as unsigned is right again.
    magnitudes = np.abs(hashes.view(np.int32)).view(np.uint32)
    magnitudes -= magnitudes // np.uint32(bit_count) * np.uint32(bit_count)
    return magnitudes.astype(np.int64)


def parse_bloom(text: str | bytes, type_code: str, path: str) -> BloomFilter:
    """A filter from its Base64 text; `path` is the file that it was in."""
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as cause:
        raise corrupt(path, None, f"Its bloom filter is not Base64: {cause}.") from cause
    match type_code.upper():
        case "SIMPLE":
            hash_count, bit_count = _parse_frame(content, 0, path)
            rows = _parse_rows(content, 0, 1, (hash_count, bit_count), path)
            return BloomFilter("SIMPLE", hash_count, bit_count, rows)
        case "DYNAMIC_V0":
            return _parse_dynamic(content, path)
    raise InvalidRequest(
        "unsupported_bloom_filter_type",
        what=f"{path} has a bloom filter of type {type_code}.",
        why="Lakewarden reads the types DYNAMIC_V0 and SIMPLE.",
        now="Look up keys without the bloom index.",
        path=path,
        type_code=type_code,
    )


def _parse_dynamic(content: bytes, path: str) -> BloomFilter:
    hash_count, bit_count = _parse_frame(content, 0, path)
    if len(content) < _FILTER.size + _ROWS.size:
        raise _broken(path)
    row_entries, last_row_entries, row_count = _ROWS.unpack_from(content, _FILTER.size)
    if row_entries < 1 or last_row_entries < 0 or row_count < 1:
        raise _broken(path)
    start = _FILTER.size + _ROWS.size
    rows = _parse_rows(content, start, row_count, (hash_count, bit_count), path)
    return BloomFilter("DYNAMIC_V0", hash_count, bit_count, rows, row_entries, last_row_entries)


def _parse_rows(
    content: bytes, start: int, row_count: int, dimensions: tuple[int, int], path: str
) -> npt.NDArray[np.uint8]:
    """The bits of rows that all have the same dimensions and fill the rest of the content."""
    row_bytes = _FILTER.size + -(-dimensions[1] // 8)
    if len(content) - start != row_count * row_bytes:
        raise _broken(path)
    for row in range(row_count):
        if _parse_frame(content, start + row * row_bytes, path) != dimensions:
            raise _broken(path)
    rows = np.frombuffer(content, np.uint8, offset=start).reshape(row_count, row_bytes)
    return rows[:, _FILTER.size :]


def _parse_frame(content: bytes, at: int, path: str) -> tuple[int, int]:
    """Number of hashes and of bits."""
    if len(content) - at < _FILTER.size:
        raise _broken(path)
    version, hash_count, hash_type, bit_count = _FILTER.unpack_from(content, at)
    if version != _VERSION or hash_type != _MURMUR:
        raise _broken(path)
    if not 0 < hash_count <= _HASHES_MAX or bit_count < 1:
        raise _broken(path)
    return hash_count, bit_count


def _broken(path: str) -> CorruptTable:
    return corrupt(path, None, "Its bloom filter has an impossible size, version or hash.")
