"""Hashes of keys as Java computes them, and the hashed parts that index keys are made of."""

import base64
import hashlib

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
_FACTOR = 31
_INVERSE = pow(_FACTOR, -1, 1 << 32)


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
