"""Hashes equal Java's, for any text."""

import struct

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.formats.hashing import (
    bloom_filter_key,
    column_stats_key,
    column_stats_prefix,
    file_group_index,
    file_hash,
    java_string_hash,
    name_hash,
    partition_hash,
    partition_stats_key,
    xxh3_128,
)
from lakewarden.engine.kernel.errors import InvalidRequest

FILE_NAME = "3e93c8a9-fda0-4e8a-91dc-b4ade7dab76d-0_1-27-53_20260307162557587.parquet"
# A string whose hash is the smallest number, which has no absolute value.
SMALLEST = "polygenelubricants"


def plain_hash(text: str) -> int:
    """`String.hashCode`, one unit after the other."""
    octets = text.encode("utf-16-le")
    result = 0
    for unit in struct.unpack(f"<{len(octets) // 2}H", octets):
        result = (31 * result + unit) & 0xFFFFFFFF
    return result - (1 << 32) if result >> 31 else result


def plain_group(text: str, count: int) -> int:
    """abs(abs(hash) % count) with Java's remainder and its absolute value."""
    magnitude = abs(plain_hash(text))
    return magnitude % count


@settings(deadline=None)
@given(st.lists(st.text()), st.booleans())
def test_hashes_of_any_text(texts: list[str], is_large: bool) -> None:
    keys = pa.array(texts, pa.large_string() if is_large else pa.string())
    assert java_string_hash(keys).tolist() == [plain_hash(text) for text in texts]


def test_hashes_of_many_and_of_long_keys() -> None:
    texts = [f"{number:036x}" for number in range(5_000)] + ["x" * 200_000, "", "y" * 70_000, ""]
    assert java_string_hash(pa.array(texts)).tolist() == [plain_hash(text) for text in texts]


def test_hashes_of_a_slice_of_several_chunks() -> None:
    keys = pa.chunked_array([["a", "é", "skipped"], ["€", "😀"]]).slice(1, 4)
    assert java_string_hash(keys).tolist() == [
        plain_hash(text) for text in ("é", "skipped", "€", "😀")
    ]


def test_hashes_of_binary_keys_are_those_of_their_text() -> None:
    assert java_string_hash(pa.array(["é".encode()])).tolist() == [plain_hash("é")]


def test_keys_that_are_no_text_are_refused() -> None:
    with pytest.raises(InvalidRequest) as refused:
        java_string_hash(pa.array([b"\xff"]))
    assert refused.value.code == "invalid_utf8"


def test_null_keys_are_refused() -> None:
    with pytest.raises(InvalidRequest) as refused:
        java_string_hash(pa.array(["a", None]))
    assert refused.value.code == "null_key"


@pytest.mark.parametrize(
    ("key", "count", "group"),
    [("TXN-001", 10, 8), ("TXN-002", 10, 7), ("Spotify$", 10, 0), ("Japan Airlines$", 10, 3)],
)
def test_known_file_groups(key: str, count: int, group: int) -> None:
    assert file_group_index(pa.array([key]), count).tolist() == [group]


def test_the_smallest_hash_has_a_file_group() -> None:
    assert java_string_hash(pa.array([SMALLEST])).tolist() == [-(1 << 31)]
    assert file_group_index(pa.array([SMALLEST]), 10).tolist() == [8]


@settings(deadline=None)
@given(st.lists(st.text()), st.integers(1, 10_000))
def test_file_groups_of_any_text(texts: list[str], count: int) -> None:
    groups = file_group_index(pa.array(texts, pa.string()), count)
    assert groups.tolist() == [plain_group(text, count) for text in texts]


def test_known_parts_of_index_keys() -> None:
    assert name_hash("amount") == "kIkwFCiqBoI="
    assert partition_hash("region=us") == "431THTTwO5Q="
    assert partition_hash("") == partition_hash(".") == "FXThHwelITM="
    assert file_hash(FILE_NAME) == "F01d3NbdD9QcFpSCtykrRA=="


def test_index_keys_are_made_of_parts() -> None:
    prefix = "kIkwFCiqBoI=431THTTwO5Q="
    assert column_stats_prefix("amount", "region=us") == prefix
    assert partition_stats_key("amount", "region=us") == prefix
    key = column_stats_key("amount", "region=us", FILE_NAME)
    assert key == prefix + "F01d3NbdD9QcFpSCtykrRA=="
    assert file_group_index(pa.array([key]), 2).tolist() == [1]
    assert bloom_filter_key("", FILE_NAME) == "FXThHwelITM=F01d3NbdD9QcFpSCtykrRA=="


@pytest.mark.parametrize("seed", [0, 1, 0xFEDCBA9876543210, (1 << 64) - 1])
def test_keys_of_any_length_have_the_128_bits_that_xxhash_says(seed: int) -> None:
    chance = np.random.default_rng(seed)
    # Each class of lengths has some, those at its borders more, and one is rare.
    lengths = [*range(260), *chance.integers(17, 129, 2_000), *[16, 17, 32, 33, 128, 129] * 40]
    values = [chance.bytes(length) for length in chance.permutation(lengths)]
    keys = pa.array([b"skipped", *values], pa.large_binary()).slice(1)
    for some in (keys, keys.slice(3, 40), keys.slice(0, 0)):
        high, low = xxh3_128(some, seed)
        said = [(int(one) << 64) | int(other) for one, other in zip(high, low, strict=True)]
        assert said == [xxhash.xxh3_128_intdigest(key, seed) for key in some.to_pylist()]


def test_more_keys_than_are_hashed_together_have_the_bits_that_xxhash_says() -> None:
    values = [f"{number:032x}".encode() for number in range(20_000)]
    high, low = xxh3_128(pa.array(values, pa.large_binary()), 7)
    for at in (0, 8_191, 8_192, 16_384, 19_999):
        assert (int(high[at]) << 64) | int(low[at]) == xxhash.xxh3_128_intdigest(values[at], 7)
