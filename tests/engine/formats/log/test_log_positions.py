"""Record positions are read from and written to Java's roaring bitmaps, byte for byte."""

import base64
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.formats.log.block import Header
from lakewarden.engine.formats.log.reader import read_blocks
from lakewarden.engine.formats.log.write import decode_positions, encode_positions
from lakewarden.engine.kernel.errors import CorruptTable
from tests.engine.formats.log.frames import golden_logs
from tests.golden_tables import GOLDEN_TABLES

JAVA_VECTOR = "AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAAAEAAAAAEA"
PATH = "some.log"


def text_of(*parts: bytes) -> str:
    return base64.b64encode(b"".join(parts)).decode()


def bucket(high: int, bitmap: bytes) -> bytes:
    return struct.pack("<I", high) + bitmap


def array_bitmap(key: int, values: list[int]) -> bytes:
    head = struct.pack("<IIHHI", 12346, 1, key, len(values) - 1, 16)
    return head + struct.pack(f"<{len(values)}H", *values)


def test_the_vector_written_by_java_is_read():
    assert decode_positions(JAVA_VECTOR, 1, PATH).tolist() == [1]


def test_the_vector_written_by_java_is_written():
    assert encode_positions(np.array([1])) == JAVA_VECTOR


def test_no_positions_are_an_empty_bitmap():
    text = encode_positions(np.zeros(0, dtype=np.int64))
    assert text == text_of(struct.pack("<q", 0))
    assert decode_positions(text, 0, PATH).tolist() == []


def test_a_run_container_is_read():
    # One container with the runs 5..9 and 100..100, as the format's specification lays it out.
    bitmap = struct.pack("<IBHHHHHHH", 12347, 1, 0, 5, 2, 5, 4, 100, 0)
    text = text_of(struct.pack("<q", 1), bucket(0, bitmap))
    assert decode_positions(text, 6, PATH).tolist() == [5, 6, 7, 8, 9, 100]


def test_a_bitmap_container_is_read():
    values = np.arange(0, 65536, 2)
    bits = np.zeros(65536, dtype=bool)
    bits[values] = True
    body = np.packbits(bits, bitorder="little").tobytes()
    bitmap = struct.pack("<IIHHI", 12346, 1, 3, len(values) - 1, 16) + body
    text = text_of(struct.pack("<q", 1), bucket(0, bitmap))
    assert decode_positions(text, len(values), PATH).tolist() == (values + (3 << 16)).tolist()


def test_positions_above_32_bits_are_read():
    text = text_of(
        struct.pack("<q", 2), bucket(0, array_bitmap(0, [7])), bucket(2, array_bitmap(1, [1, 9]))
    )
    high = (2 << 32) + (1 << 16)
    assert decode_positions(text, 3, PATH).tolist() == [7, high + 1, high + 9]


def test_more_positions_than_records_are_refused_before_they_are_expanded():
    bitmap = struct.pack("<IBHHHHH", 12347, 1, 0, 65535, 1, 0, 65535)
    with pytest.raises(CorruptTable, match="65536 positions of 10"):
        decode_positions(text_of(struct.pack("<q", 1), bucket(0, bitmap)), 10, PATH)


def test_fewer_positions_than_records_are_refused():
    with pytest.raises(CorruptTable, match="1 positions of 2"):
        decode_positions(JAVA_VECTOR, 2, PATH)


def test_a_negative_position_is_refused():
    text = text_of(struct.pack("<q", 1), bucket(0xFFFFFFFF, array_bitmap(0, [7])))
    with pytest.raises(CorruptTable, match="negative"):
        decode_positions(text, 1, PATH)


def test_positions_out_of_order_are_refused():
    text = text_of(struct.pack("<q", 1), bucket(0, array_bitmap(0, [9, 7])))
    with pytest.raises(CorruptTable, match="no roaring bitmap"):
        decode_positions(text, 2, PATH)


def test_text_that_is_not_base64_is_refused():
    with pytest.raises(CorruptTable, match="Base64"):
        decode_positions("§", 1, PATH)


@pytest.mark.parametrize("table", [name for name in GOLDEN_TABLES if name.startswith("mor_")])
def test_positions_of_golden_logs_are_written_as_java_wrote_them(table: str):
    for path, content in golden_logs(table):
        for block in read_blocks(content, path):
            text = block.headers.get(Header.RECORD_POSITIONS)
            if text is not None:
                positions = decode_positions(text, cardinality(text), path)
                assert encode_positions(positions) == text


def cardinality(text: str) -> int:
    """The number of values, read off the descriptors of the only bucket by hand."""
    payload = base64.b64decode(text)
    (cookie,) = struct.unpack_from("<I", payload, 12)
    if cookie & 0xFFFF == 12347:
        containers = (cookie >> 16) + 1
        start = 16 + (containers + 7) // 8
    else:
        (containers,) = struct.unpack_from("<I", payload, 16)
        start = 20
    sizes = struct.unpack_from(f"<{2 * containers}H", payload, start)[1::2]
    return sum(sizes) + containers


POSITIONS = st.lists(
    st.one_of(st.integers(0, 300), st.integers(65000, 66000), st.integers(0, (1 << 62) - 1)),
    unique=True,
    max_size=200,
).map(sorted)


@given(POSITIONS)
def test_positions_survive_a_round_trip(positions: list[int]):
    text = encode_positions(np.array(positions, dtype=np.int64))
    assert decode_positions(text, len(positions), PATH).tolist() == positions


@given(st.integers(0, 70000), st.integers(1, 9000), st.integers(1, 3))
def test_dense_positions_survive_a_round_trip(start: int, count: int, step: int):
    positions = np.arange(start, start + count * step, step)
    text = encode_positions(positions)
    assert decode_positions(text, count, PATH).tolist() == positions.tolist()


@given(st.binary(max_size=200), st.integers(0, 100))
def test_random_bytes_give_positions_or_corrupt_table(payload: bytes, count: int):
    assert_total(text_of(payload), count)


@given(POSITIONS, st.data())
def test_changed_bytes_give_positions_or_corrupt_table(positions: list[int], data: st.DataObject):
    payload = bytearray(base64.b64decode(encode_positions(np.array(positions, dtype=np.int64))))
    place = data.draw(st.integers(0, len(payload) - 1))
    payload[place] ^= data.draw(st.integers(1, 255))
    assert_total(text_of(bytes(payload)), len(positions))


@given(POSITIONS, st.data())
def test_cut_bytes_give_positions_or_corrupt_table(positions: list[int], data: st.DataObject):
    payload = base64.b64decode(encode_positions(np.array(positions, dtype=np.int64)))
    cut = data.draw(st.integers(0, len(payload) - 1))
    assert_total(text_of(payload[:cut]), len(positions))


def assert_total(text: str, count: int) -> None:
    try:
        positions = decode_positions(text, count, PATH)
    except CorruptTable:
        return
    assert len(positions) == count
