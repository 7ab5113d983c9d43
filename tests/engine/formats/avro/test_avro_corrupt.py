"""Bad Avro bytes end as `CorruptTable` with path and place, quickly and in little memory."""

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.formats.avro.decode import decode_records, split_length_prefixed
from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.avro.types import RecordType
from lakewarden.engine.kernel.errors import CorruptTable
from tests.engine.formats.avro.random_records import records
from tests.engine.formats.avro.twin import block_of, number_bytes

PATH = "t/.file_1.log.1_0-0-0"
ENDLESS = b"\x80" * 10 + b"\x01"
HUGE = number_bytes(2**60)
LOWEST = number_bytes(-(2**63))


def record(*types: object) -> RecordType:
    fields = [{"name": f"f{place}", "type": type_} for place, type_ in enumerate(types)]
    return parse_schema(json.dumps({"type": "record", "name": "r", "fields": fields}), PATH)


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4}
FIXED_DECIMAL = {**DECIMAL, "type": "fixed", "name": "d", "size": 18}
ARRAY = {"type": "array", "items": "string"}
FLOATS = {"type": "array", "items": "float"}
MAP = {"type": "map", "values": "int"}
ENUM = {"type": "enum", "name": "e", "symbols": ["A", "B"]}

BAD = [
    ("boolean", b"\x02"),
    ("int", ENDLESS),
    ("int", number_bytes(2**31)),
    ("int", number_bytes(-(2**31) - 1)),
    ("long", ENDLESS),
    ("long", b"\xff" * 9 + b"\x02"),
    ("long", b""),
    ("long", b"\x80"),
    ("long", b"\x00\x00"),
    ("float", b"\x00" * 3),
    ("double", b"\x00" * 7),
    ("double", b"\x00" * 9),
    ("bytes", b"\x04a"),
    ("bytes", number_bytes(-1)),
    ("bytes", HUGE),
    ("bytes", LOWEST + b"abc"),
    ("string", b"\x02\xff"),
    ("string", b"\x06\xed\xa0\x80"),
    ("string", b"\x02\xc3"),
    ({"type": "int", "logicalType": "time-millis"}, number_bytes(86_400_000)),
    ({"type": "long", "logicalType": "time-micros"}, number_bytes(-1)),
    ({"type": "fixed", "name": "x", "size": 4}, b"abc"),
    (DECIMAL, b"\x00"),
    (DECIMAL, number_bytes(2) + (10_000).to_bytes(2, "big")),
    (DECIMAL, number_bytes(65) + b"\x00" * 65),
    (DECIMAL, number_bytes(40) + b"\x01" + b"\x00" * 39),
    (FIXED_DECIMAL, b"\x01" + b"\x00" * 17),
    (FIXED_DECIMAL, b"\xff" + b"\x00" * 17),
    (ENUM, number_bytes(2)),
    (ENUM, number_bytes(-1)),
    (["null", "int"], b"\x04\x00"),
    (["null", "int"], number_bytes(-1)),
    (["null", "int"], ENDLESS),
    (["null", "int", "string"], number_bytes(3)),
    (["null", "int", "string"], number_bytes(2) + b"\x02\xff"),
    (ARRAY, b"\x02"),
    (ARRAY, b"\x02\x02a"),
    (ARRAY, HUGE),
    (ARRAY, LOWEST + b"\x00"),
    (ARRAY, number_bytes(-1) + number_bytes(3) + b"\x02a\x00"),
    (ARRAY, number_bytes(-1) + number_bytes(-1) + b"\x02a\x00"),
    (ARRAY, number_bytes(-1) + HUGE + b"\x02a\x00"),
    (ARRAY, number_bytes(3) + b"\x00\x00\x00\x00" + b"\x00"),
    (FLOATS, number_bytes(2) + b"\x00" * 7),
    (FLOATS, number_bytes(-1) + number_bytes(5) + b"\x00" * 5),
    # After some blocks, one record is walked alone, whatever its items.
    (FLOATS, (b"\x02" + b"\x00" * 4) * 6 + HUGE + b"\x00" * 8),
    ({"type": "array", "items": "long"}, b"\x02" + b"\xff" * 9 + b"\x02\x00"),
    (MAP, HUGE + b"\x02a\x02"),
    (MAP, b"\x02\x02\xff\x02\x00"),
    ({"type": "array", "items": ARRAY}, number_bytes(2) + b"\x00" + HUGE + b"\x00"),
]


@pytest.mark.parametrize("others", [0, 100], ids=["alone", "among others"])
@pytest.mark.parametrize(("type_", "datum"), BAD)
def test_a_bad_value_is_corrupt_within_its_record(type_: object, datum: bytes, others: int) -> None:
    # The padding lets a reader run over the end of the record without leaving the content.
    content = datum * (others + 1) + b"\x00" * 64
    ends = len(datum) * np.arange(1, others + 2)
    with pytest.raises(CorruptTable) as caught:
        decode_records(content, ends - len(datum), ends, record(type_), PATH)
    assert caught.value.path == PATH
    assert isinstance(caught.value.offset, int)
    assert 0 <= caught.value.offset <= len(datum)


@pytest.mark.parametrize(("type_", "datum"), BAD)
def test_the_place_of_a_bad_value_is_that_of_its_record(type_: object, datum: bytes) -> None:
    good = b"\x00" * 40
    content = good + datum + b"\x00" * 64
    ends = np.array([40 + len(datum)])
    with pytest.raises(CorruptTable) as caught:
        decode_records(content, ends - len(datum), ends, record(type_), PATH, origin=1000)
    assert isinstance(caught.value.offset, int)
    assert 1040 <= caught.value.offset <= 1040 + len(datum)


STRUCTURE = [case for case in BAD if case[0] in ("bytes", "long", ARRAY, FLOATS, MAP)]


@pytest.mark.parametrize(("type_", "datum"), STRUCTURE)
def test_a_column_left_out_is_still_checked(type_: object, datum: bytes) -> None:
    starts, ends = np.array([0]), np.array([len(datum)])
    if type_ == MAP and datum.endswith(b"\xff\x02\x00"):
        # Only reading a text tells that it is not UTF-8.
        assert decode_records(datum, starts, ends, record(type_), PATH, []).num_rows == 1
        return
    with pytest.raises(CorruptTable):
        decode_records(datum, starts, ends, record(type_), PATH, [])


def test_a_record_outside_the_content_is_corrupt() -> None:
    for start, end in [(0, 3), (-1, 1), (3, 2), (2**40, 2**40 + 1)]:
        with pytest.raises(CorruptTable):
            decode_records(b"\x00\x00", np.array([start]), np.array([end]), record("int"), PATH)


def test_many_rows_that_claim_the_same_bytes_take_no_more_memory_than_there_are_bytes() -> None:
    # Each record claims all bytes up to the end of the content.
    rows = 1000
    content = number_bytes(10**6) * rows + b"a" * 10**6
    size = len(number_bytes(10**6))
    starts = np.arange(rows) * size
    tracemalloc.start()
    with pytest.raises(CorruptTable):
        decode_records(content, starts, starts + size, record("string"), PATH)
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()


def test_a_record_that_unfolds_without_end_is_corrupt() -> None:
    wide = {
        "type": "record",
        "name": "wide",
        "fields": [{"name": f"c{place}", "type": ["null", "int"]} for place in range(10_000)],
    }
    type_ = record({"type": "array", "items": ["null", wide]})
    datum = number_bytes(10**6) + b"\x00" * (10**6 - 1) + b"\x02" + b"\x00" * 10_001
    with pytest.raises(CorruptTable) as caught:
        decode_records(datum, np.array([0]), np.array([len(datum)]), type_, PATH)
    assert "unfold" in caught.value.why


@st.composite
def damaged(draw: st.DrawFn) -> tuple[RecordType, bytes, np.ndarray]:
    """Records of some type with a few bytes replaced, or with all of them replaced."""
    type_, values = draw(records())
    content, places = block_of(type_, values)
    octets = bytearray(content)
    edges = st.sampled_from([b"\x00", b"\x01", b"\x7f", b"\xff", ENDLESS, HUGE, LOWEST])
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(octets) - 1, 0)))
        patch = draw(edges | st.binary(min_size=1, max_size=12))
        octets[at : at + len(patch)] = patch
    return type_, bytes(octets[: len(content)]), places


@settings(deadline=None, max_examples=300)
@given(damaged(), st.booleans())
def test_damaged_records_are_values_or_corrupt(
    case: tuple[RecordType, bytes, np.ndarray], only_one: bool
) -> None:
    type_, content, places = case
    columns = [field.name for field in type_.fields][:1] if only_one else None
    try:
        table = decode_records(content, places[:-1], places[1:], type_, PATH, columns)
    except CorruptTable as error:
        place = (error.path, 0 <= int(str(error.offset)) <= len(content))
        assert place == (PATH, True)
    else:
        table.validate(full=True)


@settings(deadline=None)
@given(records(), st.data())
def test_records_cut_anywhere_are_corrupt(
    case: tuple[RecordType, list[object]], data: st.DataObject
) -> None:
    type_, values = case
    content, places = block_of(type_, values[-1:])
    if len(content) == 0:
        return
    cut = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(CorruptTable):
        decode_records(content[:cut], places[:-1], np.array([cut]), type_, PATH)


@given(st.binary(max_size=64), st.integers(-1, 20))
def test_any_bytes_split_into_records_or_are_corrupt(content: bytes, count: int) -> None:
    try:
        starts, ends = split_length_prefixed(content, count, PATH)
    except CorruptTable as error:
        place = (error.path, 0 <= int(str(error.offset)) <= len(content))
        assert place == (PATH, True)
    else:
        assert starts.size == count
        assert (
            b"".join(
                int(end - start).to_bytes(4, "big") + content[start:end]
                for start, end in zip(starts, ends, strict=True)
            )
            == content
        )
