"""Hashes of keys as Java computes them, and the hashed parts that index keys are made of.

Beside them XXH3, 128 bits of each key, which only this program ever looks at.
"""

import base64
import hashlib
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from lakewarden.engine.formats.octets import Octets, Offsets, large_binary, octets_of
from lakewarden.engine.kernel.errors import InvalidRequest

# How the metadata table names the partition of a table that is not partitioned.
NO_PARTITION_NAME = "."
# What stands between column and partition in keys of an expression's statistics of partitions.
_PARTITION_STATISTIC = "__partition_stat__"

# Java's 32-bit constant 0xdabadaba, sign-extended.
_XXHASH_SEED = 0xFFFFFFFFDABADABA
# So many characters that the work on them stays in the processor's cache.
_CHUNK_UNITS = 1 << 16
_USUAL_POWERS = 2 * _CHUNK_UNITS
_FACTOR = 31
_INVERSE = pow(_FACTOR, -1, 1 << 32)

Words = npt.NDArray[np.uint64]

# What XXH3 is defined by for keys of 17 to 128 bytes: its secret, and factors.
_SECRET = np.frombuffer(
    bytes.fromhex(
        "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
        "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
        "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
        "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    ),
    "<u8",
)
_PRIME_1, _PRIME_2, _PRIME_4 = map(
    np.uint64, (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x85EBCA77C2B2AE63)
)
_AVALANCHE = np.uint64(0x165667919E3779F9)
_HALF_BITS, _AVALANCHE_BITS = np.uint64(32), np.uint64(37)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_SHORTEST, _LONGEST = 17, 128
_WORD_BYTES, _DIGEST_BYTES = 8, 16
# Two words from each end of the key.
_ROUND_BYTES = 2 * _DIGEST_BYTES
# So many keys that their words stay in the processor's cache; of few keys each is hashed alone.
_TOGETHER, _ALONE = 1 << 13, 32


def java_string_hash(keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int32]:
    """`String.hashCode` of each key: over its UTF-16 code units, h = 31 * h + unit.

    That is the sum of unit * 31^(last - n). As 31 has an inverse modulo 2^32, every unit of a chunk
    of keys gets a weight by its place in the chunk alone, the weights of a key are added up, and
    the sum is multiplied by the power of 31 that belongs to the place where the key ends.
    """
    units, bounds = _utf16_units(*octets_of(large_binary(keys)))
    hashes = np.zeros(len(bounds) - 1, np.uint32)
    sizes = np.diff(bounds)
    longest = min(int(sizes.max(initial=0)) + _CHUNK_UNITS, max(int(bounds[-1]), 1))
    weights, powers = _powers(_INVERSE, longest), _powers(_FACTOR, longest)
    start = 0
    while start < len(hashes):
        first = bounds[start]
        stop = int(np.searchsorted(bounds, first + _CHUNK_UNITS, "right"))
        stop = min(max(stop - 1, start + 1), len(hashes))
        ends = bounds[start + 1 : stop + 1] - first
        weighted = units[first : first + ends[-1]] * weights[: ends[-1]]
        filled = np.flatnonzero(sizes[start:stop])
        if len(filled):
            starts = (bounds[start:stop] - first)[filled]
            sums = np.add.reduceat(weighted, starts, dtype=np.uint32)
            hashes[start + filled] = sums * powers[ends[filled] - 1]
        start = stop
    return hashes.view(np.int32)


def _powers(base: int, count: int) -> npt.NDArray[np.uint32]:
    """At least so many powers of a number, from its zeroth on."""
    return _usual_powers(base) if count <= _USUAL_POWERS else _made_powers(base, count)


@cache
def _usual_powers(base: int) -> npt.NDArray[np.uint32]:
    return _made_powers(base, _USUAL_POWERS)


def _made_powers(base: int, count: int) -> npt.NDArray[np.uint32]:
    factors = np.full(count, base, np.uint32)
    factors[0] = 1
    powers: npt.NDArray[np.uint32] = np.multiply.accumulate(factors, dtype=np.uint32)
    return powers


def _utf16_units(
    octets: Octets, bounds: Offsets
) -> tuple[Octets | npt.NDArray[np.uint16], Offsets]:
    """The code units of UTF-8 strings; ASCII has them already."""
    text = octets[bounds[0] : bounds[-1]]
    if text.max(initial=0) < 0x80:
        return text, bounds - bounds[0]
    # A character has one unit, and one more where its first byte says that it has four bytes.
    units_before = np.zeros(len(text) + 1, np.int64)
    np.cumsum(((text & 0xC0) != 0x80).astype(np.int8) + (text >= 0xF0), out=units_before[1:])
    try:
        units = text.tobytes().decode().encode("utf-16-le")
    except UnicodeDecodeError as cause:
        raise InvalidRequest(
            "invalid_utf8",
            what="Some keys to hash are not valid UTF-8.",
            why="The hash of a key is defined over its characters.",
            now="Check the source of the keys.",
        ) from cause
    return np.frombuffer(units, "<u2"), units_before[bounds - bounds[0]]


def file_group_index(keys: pa.Array | pa.ChunkedArray, count: int) -> npt.NDArray[np.int64]:
    """For each key the number of its file group among `count`, in the order of file ids."""
    # In Java the remainder has the sign of the hash, and a second abs removes it.
    return np.abs(java_string_hash(keys).astype(np.int64)) % count


def name_hash(name: str) -> str:
    """The 12 characters by which index keys stand for a column or a partition."""
    digest = xxhash.xxh64(name.encode(), seed=_XXHASH_SEED).digest()
    return base64.b64encode(digest).decode()


def partition_hash(partition: str) -> str:
    """The 12 characters of a partition path, which may be empty."""
    return name_hash(partition or NO_PARTITION_NAME)


def file_hash(file_name: str) -> str:
    """The 24 characters by which index keys stand for a file."""
    digest = hashlib.md5(file_name.encode(), usedforsecurity=False).digest()
    return base64.b64encode(digest).decode()


def column_stats_prefix(column: str, partition: str) -> str:
    """What the keys of a column's statistics begin with, for all files of a partition."""
    return name_hash(column) + partition_hash(partition)


def column_stats_key(column: str, partition: str, file_name: str) -> str:
    """The key of a column's statistics in one file."""
    return column_stats_prefix(column, partition) + file_hash(file_name)


def partition_stats_key(column: str, partition: str) -> str:
    """The key of a column's statistics in all files of a partition."""
    return column_stats_prefix(column, partition)


def expression_partition_key(column: str, partition: str) -> str:
    """The key of an expression's statistics in all files of a partition."""
    return name_hash(column) + name_hash(_PARTITION_STATISTIC) + partition_hash(partition)


def bloom_filter_key(partition: str, file_name: str) -> str:
    """The key of a base file's bloom filter."""
    return partition_hash(partition) + file_hash(file_name)


def xxh3_128(keys: pa.LargeBinaryArray, seed: int) -> tuple[Words, Words]:
    """128 bits of each key, in two halves: XXH3 under a seed, as xxhash has it.

    Keys of the usual lengths are hashed many at a time, in steps on words of all of them.
    """
    octets, bounds = octets_of(keys)
    sizes = np.diff(bounds)
    high, low = np.empty(len(keys), np.uint64), np.empty(len(keys), np.uint64)
    rounds = np.where((sizes >= _SHORTEST) & (sizes <= _LONGEST), (sizes - 1) // _ROUND_BYTES, -1)
    for count in np.flatnonzero(np.bincount(rounds + 1)).tolist():
        places = np.flatnonzero(rounds == count - 1)
        if not count or len(places) < _ALONE:
            high[places], low[places] = _each_alone(keys.take(pa.array(places)), seed)
            continue
        for first in range(0, len(places), _TOGETHER):
            some = places[first : first + _TOGETHER]
            starts, ends = bounds[some], bounds[some + 1]
            high[some], low[some] = _together(octets, starts, ends, seed, count)
    return high, low


def _each_alone(keys: pa.LargeBinaryArray, seed: int) -> tuple[Words, Words]:
    digests = b"".join(xxhash.xxh3_128_digest(key, seed=seed) for key in keys.to_pylist())
    assert len(digests) == _DIGEST_BYTES * len(keys)
    words = np.frombuffer(digests, ">u8").reshape(-1, 2)
    return words[:, 0].astype(np.uint64), words[:, 1].astype(np.uint64)


def _together(
    octets: Octets, starts: Offsets, ends: Offsets, seed: int, rounds: int
) -> tuple[Words, Words]:
    """The hashes of keys that take so many rounds, from their middle outwards."""
    # Every 8 bytes of the buffer as a number, overlapping.
    words: Words = np.ndarray((len(octets) - _WORD_BYTES + 1,), "<u8", octets, 0, (1,))
    sizes = (ends - starts).astype(np.uint64)
    seeds = np.array([seed, -seed % (1 << 64)] * 2, np.uint64)
    low, high = sizes * _PRIME_1, np.zeros(len(sizes), np.uint64)
    for number in reversed(range(rounds)):
        secret = _SECRET[4 * number : 4 * number + 4] + seeds
        front, back = starts + _DIGEST_BYTES * number, ends - _DIGEST_BYTES * (number + 1)
        first, second = words[front], words[front + _WORD_BYTES]
        third, fourth = words[back], words[back + _WORD_BYTES]
        low += _folded(first ^ secret[0], second ^ secret[1])
        low ^= third + fourth
        high += _folded(third ^ secret[2], fourth ^ secret[3])
        high ^= first + second
    mixed = low * _PRIME_1 + high * _PRIME_4 + (sizes + seeds[1]) * _PRIME_2
    return -_avalanched(mixed), _avalanched(low + high)


def _folded(left: Words, right: Words) -> Words:
    """The product in 128 bits, its halves as one by exclusive or."""
    left_low, left_high = left & _LOW_HALF, left >> _HALF_BITS
    right_low, right_high = right & _LOW_HALF, right >> _HALF_BITS
    carried = (left_low * right_low) >> _HALF_BITS
    middle = left_high * right_low
    carried += middle & _LOW_HALF
    carried += left_low * right_high
    middle >>= _HALF_BITS
    middle += carried >> _HALF_BITS
    middle += left_high * right_high
    middle ^= left * right
    return middle


def _avalanched(words: Words) -> Words:
    mixed = words ^ (words >> _AVALANCHE_BITS)
    mixed *= _AVALANCHE
    mixed ^= mixed >> _HALF_BITS
    return mixed
