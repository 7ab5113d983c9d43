"""Avro records to Arrow columns: the same as reading them one by one, on every type."""

import io
import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from lakewarden.engine.formats.avro.arrow_types import arrow_schema
from lakewarden.engine.formats.avro.decode import (
    WINDOW_BYTES,
    WINDOW_ROWS,
    decode_records,
    split_length_prefixed,
)
from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.avro.types import RecordType
from lakewarden.engine.formats.avro.walk import ENOUGH_ROWS
from lakewarden.engine.kernel.errors import CorruptTable, Defect, InvalidRequest
from tests.engine.formats.avro.random_records import records
from tests.engine.formats.avro.twin import block_of, number_bytes, table_of

PATH = "t/.file_1.log.1_0-0-0"


def record(*types: object) -> RecordType:
    fields = [{"name": f"f{place}", "type": type_} for place, type_ in enumerate(types)]
    return parse_schema(json.dumps({"type": "record", "name": "r", "fields": fields}), PATH)


def decoded(
    type_: RecordType, datums: Sequence[bytes], columns: Sequence[str] | None = None
) -> pa.Table:
    places = np.cumsum([0, *map(len, datums)], dtype=np.int64)
    content = b"".join(datums)
    table = decode_records(content, places[:-1], places[1:], type_, PATH, columns)
    table.validate(full=True)
    return table


def only_column(type_: RecordType, datums: Sequence[bytes]) -> list[object]:
    values: list[object] = decoded(type_, datums)["f0"].to_pylist()
    return values


@settings(deadline=None)
@given(records())
def test_records_of_any_type_equal_the_twin(case: tuple[RecordType, list[object]]) -> None:
    type_, values = case
    content, places = block_of(type_, values)
    table = decode_records(content, places[:-1], places[1:], type_, PATH)
    table.validate(full=True)
    assert table.equals(table_of(type_, values))


@settings(deadline=None)
@given(records())
def test_chosen_columns_equal_those_of_all(case: tuple[RecordType, list[object]]) -> None:
    type_, values = case
    content, places = block_of(type_, values)
    names = [field.name for field in type_.fields][::-2]
    table = decode_records(content, places[:-1], places[1:], type_, PATH, names)
    assert table.equals(table_of(type_, values).select(names))


def test_logical_types_mean_what_they_mean_to_fastavro() -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": name, "type": {"type": base, "logicalType": name.replace("_", "-"), **more}}
            for name, base, more in [
                ("date", "int", {}),
                ("time_millis", "int", {}),
                ("time_micros", "long", {}),
                ("timestamp_millis", "long", {}),
                ("timestamp_micros", "long", {}),
                ("local_timestamp_millis", "long", {}),
                ("local_timestamp_micros", "long", {}),
                ("decimal", "bytes", {"precision": 12, "scale": 3}),
            ]
        ],
    }
    snapshot = datetime(1969, 12, 31, 23, 59, 59, 123000, tzinfo=UTC)
    local = datetime(2026, 2, 28, 1, 2, 3, 4000)
    row = {
        "date": date(1961, 3, 1),
        "time_millis": time(23, 59, 59, 999000),
        "time_micros": time(0, 0, 0, 1),
        "timestamp_millis": snapshot,
        "timestamp_micros": snapshot,
        "local_timestamp_millis": local,
        "local_timestamp_micros": local,
        "decimal": Decimal("-123456789.012"),
    }
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(schema), row)
    table = decoded(parse_schema(json.dumps(schema), PATH), [written.getvalue()])
    assert table.to_pylist() == [row]


def test_no_records_give_no_rows_but_all_columns() -> None:
    type_ = record("int", ["null", "string"], {"type": "array", "items": "int"})
    table = decoded(type_, [])
    assert table.num_rows == 0
    assert table.schema == arrow_schema(type_)


def test_records_without_columns_are_still_counted() -> None:
    assert decoded(record(), [b"", b"", b""]).num_rows == 3
    assert decoded(record("int", "int"), [b"\x00\x02"] * 4, []).num_rows == 4


def test_two_thousand_columns_come_in_order() -> None:
    type_ = record(*(["long"] * 2000))
    row = b"".join(number_bytes(place) for place in range(2000))
    table = decoded(type_, [row] * 3)
    assert [column[2].as_py() for column in table.columns] == list(range(2000))


def test_more_records_than_a_window_holds_stay_in_order() -> None:
    rows = 2 * WINDOW_ROWS + 7
    table = decoded(record("long"), [number_bytes(place) for place in range(rows)])
    assert table["f0"].to_pylist() == list(range(rows))


def test_records_larger_than_a_window_are_read() -> None:
    texts = ["a" * (WINDOW_BYTES + 5), "b", "c" * (WINDOW_BYTES // 2), "d" * WINDOW_BYTES]
    content, places = block_of(record("string"), [{"f0": text} for text in texts])
    table = decode_records(content, places[:-1], places[1:], record("string"), PATH)
    assert table["f0"].to_pylist() == texts


def test_content_beyond_two_gigabytes_is_read() -> None:
    # Pages that nobody writes to take no memory.
    content = np.zeros((5 << 30) // 2, np.uint8)
    starts = np.array([0, (1 << 31) - 3, content.size - 5])
    for start in starts:
        content[start : start + 5] = np.frombuffer(b"\x02\x06xyz", np.uint8)
    type_ = record(["null", "string"])
    table = decode_records(content.data, starts, starts + 5, type_, PATH)
    assert table["f0"].to_pylist() == ["xyz"] * 3


def test_gaps_between_records_are_left_out() -> None:
    content = b"..\x02...\x04."
    table = decode_records(content, np.array([2, 6]), np.array([3, 7]), record("int"), PATH)
    assert table["f0"].to_pylist() == [1, 2]


@pytest.mark.parametrize("wrap", [bytes, memoryview, pa.py_buffer])
def test_content_may_be_bytes_a_view_or_a_buffer(wrap: type) -> None:
    content, places = block_of(record("string"), [{"f0": "a"}, {"f0": "b"}])
    table = decode_records(wrap(content), places[:-1], places[1:], record("string"), PATH)
    assert table["f0"].to_pylist() == ["a", "b"]


def test_columns_do_not_hold_on_to_the_content() -> None:
    content = bytearray(b"\x02a\x02b")
    table = decode_records(
        memoryview(content), np.array([0, 2]), np.array([2, 4]), record("string"), PATH
    )
    content[:] = b"\x00" * 4
    assert table["f0"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize("rows", [1, ENOUGH_ROWS + 20])
@pytest.mark.parametrize("item", ["int", "string", "double"])
def test_arrays_may_come_in_several_blocks_with_or_without_sizes(item: str, rows: int) -> None:
    values: list[object] = {
        "int": [5, -70, 900],
        "string": ["", "ab", "c"],
        "double": [0.5, 1.0, 2.0],
    }[item]
    plain = record(item)
    one, two, three = (block_of(plain, [{"f0": value}])[0] for value in values)
    sized = number_bytes(-2) + number_bytes(len(one + two)) + one + two
    datum = sized + number_bytes(1) + three + b"\x00"
    type_ = record({"type": "array", "items": item})
    assert only_column(type_, [datum] * rows) == [values] * rows


@pytest.mark.parametrize("rows", [3, ENOUGH_ROWS + 20])
def test_arrays_of_very_different_lengths_stay_with_their_rows(rows: int) -> None:
    lengths = [place % 5 for place in range(rows)]
    lengths[1] = 3000
    values = [{"f0": [f"{place}.{at}" for at in range(n)]} for place, n in enumerate(lengths)]
    type_ = record({"type": "array", "items": "string"})
    content, places = block_of(type_, values)
    table = decode_records(content, places[:-1], places[1:], type_, PATH)
    assert table.to_pylist() == values


def test_records_that_unfold_to_many_values_are_read_in_smaller_steps() -> None:
    wide = {
        "type": "record",
        "name": "wide",
        "fields": [{"name": f"c{place}", "type": ["null", "int"]} for place in range(400)],
    }
    sparse = {"type": "record", "name": "sparse", "fields": [{"name": "w", "type": ["null", wide]}]}
    type_ = record({"type": "array", "items": sparse})
    datum = number_bytes(600) + b"\x00" * 599 + b"\x02" + b"\x00" * 400 + b"\x00"
    table = decoded(type_, [datum] * 60)
    assert [chunk.values.field(0).null_count for chunk in table["f0"].chunks] == [
        599 * len(chunk) for chunk in table["f0"].chunks
    ]
    assert table["f0"].num_chunks > 1


def test_map_entries_keep_their_order_and_their_doubles() -> None:
    datum = (
        number_bytes(3) + b"".join(b"\x02" + key + b"\x02" for key in (b"b", b"a", b"b")) + b"\x00"
    )
    assert only_column(record({"type": "map", "values": "int"}), [datum]) == [
        [("b", 1), ("a", 1), ("b", 1)]
    ]


def test_a_branch_number_longer_than_needed_is_understood() -> None:
    datums = [b"\x80\x00", b"\x82\x80\x00\x08"]
    assert only_column(record(["null", "int"]), datums) == [None, 4]


def test_the_longest_numbers_are_understood() -> None:
    edges = [2**63 - 1, -(2**63), 2**55, -(2**55) - 1, 2**62, -1, 0]
    assert only_column(record("long"), [number_bytes(edge) for edge in edges]) == edges


def test_a_decimal_may_be_padded() -> None:
    type_ = record({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1})
    datums = [number_bytes(40) + b"\xff" * 40, number_bytes(3) + b"\x00\x00\x7b"]
    assert only_column(type_, datums) == [Decimal("-0.1"), Decimal("12.3")]


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(InvalidRequest) as caught:
        decoded(record("int"), [b"\x00"], ["f0", "other"])
    assert caught.value.code == "unknown_column"


def test_records_out_of_order_are_our_mistake() -> None:
    with pytest.raises(Defect):
        decode_records(b"\x00\x00", np.array([1, 0]), np.array([2, 1]), record("int"), PATH)


def test_records_with_lengths_in_front_are_found() -> None:
    content = b"\x00\x00\x00\x02ab" + b"\x00\x00\x00\x00" + b"\x00\x00\x00\x01c"
    starts, ends = split_length_prefixed(content, 3, PATH)
    assert [content[a:b] for a, b in zip(starts, ends, strict=True)] == [b"ab", b"", b"c"]


def test_no_records_with_lengths_are_found_in_no_bytes() -> None:
    starts, ends = split_length_prefixed(b"", 0, PATH)
    assert (starts.size, ends.size) == (0, 0)


@pytest.mark.parametrize(
    ("content", "count", "offset"),
    [
        (b"", 1, 0),
        (b"\x00\x00\x00\x01a", -1, 0),
        (b"\x00\x00\x00\x01a", 2**31 - 1, 0),
        (b"\x00\x00\x00\x02a", 1, 0),
        (b"\x00\x00\x00\x00\x00\x00\x00\x09abc", 2, 4),
        (b"\x00\x00\x00\x01a\x00\x00\x00", 2, 5),
        (b"\x00\x00\x00\x04abcd\x00", 2, 8),
        (b"\x00\x00\x00\x00\xff\xff\xff\xf8\x00\x00\x00\x00", 3, 4),
        (b"\x00\x00\x00\x01ab", 1, 5),
        (b"\x00\x00\x00\x09abc\x00\x00\x00\x00", 2, 11),
        (b"\xff\xff\xff\x00\x00\x00\x00\x00", 2, 0),
        (b"\x7f\xff\xff\xff\x00\x00\x00\x00", 1, 0),
    ],
)
def test_wrong_lengths_are_corrupt_at_their_place(content: bytes, count: int, offset: int) -> None:
    with pytest.raises(CorruptTable) as caught:
        split_length_prefixed(content, count, PATH, origin=100)
    assert (caught.value.path, caught.value.offset) == (PATH, 100 + offset)
