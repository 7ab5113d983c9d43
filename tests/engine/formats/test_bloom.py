"""Bloom filters equal those of Java, byte for byte, and never deny a key that was added."""

import base64
import io
import struct
import zipfile
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakewarden.engine.formats.bloom import (
    BloomFilter,
    BloomType,
    build_bloom,
    extend_bloom,
    full_bloom,
    parse_bloom,
)
from lakewarden.engine.formats.parquet_footer import key_footer
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from tests.golden_tables import GOLDEN_TABLES, archive_of

MULTIPLIER = 0x5BD1E995
WORD = (1 << 32) - 1
keys = st.lists(st.binary(min_size=1, max_size=40), max_size=40)


def plain_murmur(key: bytes, seed: int) -> int:
    """Hadoop's hash, one step after the other."""
    result = (seed ^ len(key)) & WORD
    whole = len(key) // 4 * 4
    for at in range(0, whole, 4):
        mixed = int.from_bytes(key[at : at + 4], "little") * MULTIPLIER & WORD
        result = result * MULTIPLIER & WORD ^ ((mixed ^ mixed >> 24) * MULTIPLIER & WORD)
    if len(key) > whole:
        for distance in range(1, len(key) - whole + 1):
            (octet,) = struct.unpack("b", key[-distance:][:1])
            result ^= (octet << 8 * (distance - 1)) & WORD
        result = result * MULTIPLIER & WORD
    result = (result ^ result >> 13) * MULTIPLIER & WORD
    return result ^ result >> 15


def plain_places(key: bytes, hash_count: int, bit_count: int) -> list[int]:
    """The bits of a key, as Java's remainder and absolute value give them."""
    places, result = [], 0
    for _ in range(hash_count):
        result = plain_murmur(key, result)
        signed = result - (1 << 32) if result >> 31 else result
        places.append(abs(signed) % bit_count)
    return places


class PlainDynamicFilter:
    """Java's growing filter: which row a key goes to, one key after the other."""

    def __init__(self, entries: int, entries_max: int) -> None:
        self.entries, self.entries_max = entries, entries_max
        self.rows: list[list[bytes]] = [[]]
        self.in_row = self.turn = 0
        self.is_full = False

    def add(self, key: bytes) -> None:
        if self.is_full:
            row = self.rows[self.turn % len(self.rows)]
            self.turn += 1
        elif self.in_row < self.entries:
            row = self.rows[-1]
        elif len(self.rows) * self.entries < self.entries_max:
            self.rows.append([])
            row, self.in_row = self.rows[-1], 0
        else:
            self.is_full = True
            row = self.rows[0]
        row.append(key)
        self.in_row += 1


def parquet_files(table: str) -> Iterator[pq.ParquetFile]:
    with zipfile.ZipFile(archive_of(table)) as archive:
        for name in archive.namelist():
            is_data = name.endswith(".parquet") and "/.hoodie/" not in name and "/._" not in name
            if is_data and archive.getinfo(name).file_size:
                yield pq.ParquetFile(io.BytesIO(archive.read(name)))


def set_bits(filter_: BloomFilter, row: int) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(filter_.rows[row], bitorder="little")).tolist())


def binary(values: list[bytes]) -> pa.Array:
    return pa.array(values, pa.binary())


def test_the_known_hash_and_places() -> None:
    assert plain_murmur(b"TXN-001", 0) == 0xAF96792D
    assert plain_places(b"TXN-001", 5, 2587966) == [762789, 591431, 1893349, 899664, 868522]
    filter_ = build_bloom(pa.array(["TXN-001"]))
    assert set_bits(filter_, 0) == set(plain_places(b"TXN-001", 30, 2587966))


@pytest.mark.parametrize("table", GOLDEN_TABLES)
def test_filters_equal_those_in_the_footers_of_java(table: str) -> None:
    for file in parquet_files(table):
        footer = key_footer(file.metadata)
        if footer.bloom_text is None:
            continue
        record_keys = file.read(columns=["_hoodie_record_key"]).column(0)
        parsed = parse_bloom(footer.bloom_text, footer.bloom_type or "", table)
        assert parsed.might_contain(record_keys).all()
        assert parsed.text() == footer.bloom_text
        built = build_bloom(record_keys, entries=parsed.row_entries)
        assert built.text() == footer.bloom_text


@pytest.mark.parametrize(("entries", "bits"), [(60_000, 2_587_966), (10_000, 431_328)])
def test_dimensions_are_those_of_java(entries: int, bits: int) -> None:
    filter_ = build_bloom(pa.array([], pa.string()), entries=entries)
    assert (filter_.hash_count, filter_.bit_count, filter_.last_row_entries) == (30, bits, 0)


@settings(deadline=None)
@given(keys)
@example([bytes(range(256))[:size] * 3 for size in (250, 249, 9, 9, 7, 6, 2, 0)])
def test_bits_are_those_of_a_plain_loop(added: list[bytes]) -> None:
    filter_ = build_bloom(binary(added), type_code="SIMPLE", entries=20, false_positive_rate=0.01)
    expected = {
        place for key in added for place in plain_places(key, filter_.hash_count, filter_.bit_count)
    }
    assert set_bits(filter_, 0) == expected


@settings(deadline=None)
@given(keys, keys, st.sampled_from(["SIMPLE", "DYNAMIC_V0"]), st.integers(1, 20))
def test_membership_is_that_of_a_plain_loop(
    added: list[bytes], asked: list[bytes], type_code: BloomType, entries: int
) -> None:
    filter_ = build_bloom(
        binary(added), type_code=type_code, entries=entries, false_positive_rate=0.1
    )
    rows = [set_bits(filter_, row) for row in range(len(filter_.rows))]
    expected = [
        any(
            row.issuperset(plain_places(key, filter_.hash_count, filter_.bit_count)) for row in rows
        )
        for key in [*added, *asked]
    ]
    assert filter_.might_contain(binary([*added, *asked])).tolist() == expected
    assert all(expected[: len(added)])


@settings(deadline=None)
@given(st.lists(st.binary(min_size=1), max_size=40), st.integers(1, 3), st.integers(1, 9))
def test_rows_grow_and_go_round_as_in_java(
    added: list[bytes], entries: int, entries_max: int
) -> None:
    plain = PlainDynamicFilter(entries, entries_max)
    for key in added:
        plain.add(key)
    filter_ = build_bloom(
        binary(added), entries=entries, false_positive_rate=0.01, entries_max=entries_max
    )
    assert filter_.last_row_entries == plain.in_row
    assert [set_bits(filter_, row) for row in range(len(filter_.rows))] == [
        {
            place
            for key in row_keys
            for place in plain_places(key, filter_.hash_count, filter_.bit_count)
        }
        for row_keys in plain.rows
    ]


@settings(deadline=None)
@given(keys, st.sampled_from(["SIMPLE", "DYNAMIC_V0"]), st.integers(1, 20))
def test_text_is_read_back(added: list[bytes], type_code: BloomType, entries: int) -> None:
    filter_ = build_bloom(binary(added), type_code=type_code, entries=entries)
    parsed = parse_bloom(filter_.text(), type_code.lower(), "some.parquet")
    assert parsed.text() == filter_.text()
    assert parsed.might_contain(binary(added)).all()


def test_keys_that_were_not_added_are_denied() -> None:
    filter_ = build_bloom(pa.array([f"key {number}" for number in range(50_000)]))
    others = pa.chunked_array([[f"other {number}" for number in range(50_000)], ["key 7"]])
    found = filter_.might_contain(others)
    assert found[-1]
    assert np.count_nonzero(found) < 3


def test_a_type_that_is_not_known_is_refused() -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_bloom(build_bloom(pa.array(["a"])).text(), "DYNAMIC_V1", "some.parquet")
    assert refused.value.code == "unsupported_bloom_filter_type"


@pytest.mark.parametrize(("entries", "rate"), [(0, 0.1), (10, 0.0), (10, 1.0), (1 << 31, 1e-9)])
def test_impossible_dimensions_are_refused(entries: int, rate: float) -> None:
    with pytest.raises(InvalidRequest) as refused:
        build_bloom(pa.array(["a"]), entries=entries, false_positive_rate=rate)
    assert refused.value.code == "impossible_bloom_filter"


SAMPLE = base64.b64decode(build_bloom(pa.array(["a"]), entries=2).text())


def parse_or_refuse(text: bytes | str, type_code: str) -> None:
    """Use what can be parsed; nothing but corrupt text is refused."""
    try:
        filter_ = parse_bloom(text, type_code, "some.parquet")
    except CorruptTable:
        return
    filter_.might_contain(pa.array(["a", "bc"]))


ROW_START = 25


@pytest.mark.parametrize(
    ("place", "number"),
    [
        (0, -2),  # version
        (4, 0),  # number of hashes
        (4, 1 << 20),
        (5, 0x1F00),  # hash type, the last byte of these four
        (9, 0),  # number of bits
        (9, -8),
        (13, 0),  # keys per row
        (17, -1),  # keys in the last row
        (21, 0),  # number of rows
        (21, 2),
        (21, (1 << 31) - 1),
        (ROW_START + 4, 29),  # a row's own number of hashes
        (ROW_START + 9, 8),  # a row's own number of bits
    ],
)
def test_impossible_numbers_are_refused(place: int, number: int) -> None:
    damaged = SAMPLE[:place] + struct.pack(">i", number) + SAMPLE[place + 4 :]
    with pytest.raises(CorruptTable, match="impossible"):
        parse_bloom(base64.b64encode(damaged), "DYNAMIC_V0", "some.parquet")


@pytest.mark.parametrize(("hash_count", "bit_count"), [(0, 8), (1 << 20, 8), (-1, 8), (3, 0)])
def test_impossible_plain_filters_are_refused(hash_count: int, bit_count: int) -> None:
    content = struct.pack(">iibi", -1, hash_count, 1, bit_count) + bytes(bit_count // 8)
    with pytest.raises(CorruptTable, match="impossible"):
        parse_bloom(base64.b64encode(content), "SIMPLE", "some.parquet")


def test_a_cut_filter_is_refused() -> None:
    for size in (0, 12, 24, len(SAMPLE) - 1):
        with pytest.raises(CorruptTable, match="impossible"):
            parse_bloom(base64.b64encode(SAMPLE[:size]), "DYNAMIC_V0", "some.parquet")


@settings(deadline=None)
@given(st.data(), st.sampled_from(["SIMPLE", "DYNAMIC_V0"]))
def test_damaged_filters_are_refused_or_read(data: st.DataObject, type_code: str) -> None:
    damaged = bytearray(SAMPLE)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.just(len(damaged)) | st.integers(0, len(damaged)))
    parse_or_refuse(base64.b64encode(damaged[:end]), type_code)


@settings(deadline=None)
@given(st.binary(max_size=80) | st.text(max_size=80), st.sampled_from(["SIMPLE", "DYNAMIC_V0"]))
def test_random_text_is_refused_or_read(text: bytes | str, type_code: str) -> None:
    parse_or_refuse(text, type_code)
    if isinstance(text, bytes):
        parse_or_refuse(base64.b64encode(text), type_code)


@given(keys, keys, st.integers(1, 12), st.sampled_from(["SIMPLE", "DYNAMIC_V0"]))
def test_extending_a_filter_is_building_it_with_more_keys(
    first: list[bytes], more: list[bytes], entries: int, type_code: BloomType
) -> None:
    def built(members: list[bytes]) -> BloomFilter:
        binaries = pa.array(members, pa.binary())
        return build_bloom(binaries, type_code=type_code, entries=entries, entries_max=20)

    grown = extend_bloom(built(first), pa.array(more, pa.binary()), entries_max=20)
    assert grown.text() == built(first + more).text()


def test_a_full_filter_is_as_long_as_a_real_one_and_rules_out_nothing() -> None:
    strangers = pa.array([f"stranger-{number}" for number in range(100)])
    full = full_bloom(1000, entries=50, entries_max=100)
    real = build_bloom(pa.array(map(str, range(1000))), entries=50, entries_max=100)
    assert len(full.text()) == len(real.text())
    parsed = parse_bloom(full.text(), "DYNAMIC_V0", "p")
    assert parsed.might_contain(strangers).all()
