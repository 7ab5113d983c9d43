"""Arrow columns to Avro records: the bytes of record-wise writers, whatever the columns' layout."""

import io
import json
import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings

from lakewarden.engine.formats.avro.arrow_types import avro_schema
from lakewarden.engine.formats.avro.decode import decode_records, split_length_prefixed
from lakewarden.engine.formats.avro.encode import CHUNK_ROWS, encode_records
from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.avro.types import RecordType
from lakewarden.engine.kernel.errors import InvalidRequest
from tests.engine.formats.avro.random_records import records
from tests.engine.formats.avro.twin import block_of, table_of

ROWS = [
    {
        "flag": True,
        "small": -(2**31),
        "large": 2**63 - 1,
        "single": 0.1,
        "wide": -1e300,
        "text": "ü€\U0001f600",
        "octets": b"\x00\xff",
        "day": date(1961, 3, 1),
        "clock": time(23, 59, 59, 999999),
        "moment": datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
        "local": datetime(2026, 2, 28, 1, 2, 3, 4),
        "amount": Decimal("-12345678.90"),
        "inner": {"x": 1, "y": None},
        "list": [{"q": Decimal("1.500")}, None],
        "map": [("k", 1.5), ("n", None)],
    },
    {
        "flag": False,
        "small": 0,
        "large": -64,
        "single": None,
        "wide": None,
        "text": "",
        "octets": None,
        "day": None,
        "clock": None,
        "moment": None,
        "local": None,
        "amount": None,
        "inner": None,
        "list": [],
        "map": None,
    },
]
SCHEMA = pa.schema(
    [
        pa.field("flag", pa.bool_(), nullable=False),
        pa.field("small", pa.int32(), nullable=False),
        pa.field("large", pa.int64()),
        pa.field("single", pa.float32()),
        pa.field("wide", pa.float64()),
        pa.field("text", pa.string(), nullable=False),
        pa.field("octets", pa.binary()),
        pa.field("day", pa.date32()),
        pa.field("clock", pa.time64("us")),
        pa.field("moment", pa.timestamp("us", "UTC")),
        pa.field("local", pa.timestamp("us")),
        pa.field("amount", pa.decimal128(10, 2)),
        pa.field("inner", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        pa.field("list", pa.list_(pa.struct([("q", pa.decimal128(8, 3))]))),
        pa.field("map", pa.map_(pa.string(), pa.float64())),
    ]
)


def record(*types: object) -> RecordType:
    fields = [{"name": f"f{place}", "type": type_} for place, type_ in enumerate(types)]
    return parse_schema(json.dumps({"type": "record", "name": "r", "fields": fields}), "test")


def encoded(table: pa.Table, schema: RecordType) -> bytes:
    content: bytes = encode_records(table, schema, length_prefixed=False).content.to_pybytes()
    return content


def column(values: object, type_: pa.DataType) -> pa.Table:
    return pa.table({"f0": pa.array(values, type_)})


def by_fastavro(text: str, rows: list[dict[str, object]]) -> list[bytes]:
    schema, datums = fastavro.parse_schema(json.loads(text)), []
    for row in rows:
        # fastavro takes maps as dictionaries.
        pairs = {name: dict(one) if name == "map" and one else one for name, one in row.items()}
        written = io.BytesIO()
        fastavro.schemaless_writer(written, schema, pairs)
        datums.append(written.getvalue())
    return datums


@settings(deadline=None)
@given(records())
def test_records_of_any_type_equal_the_twin(case: tuple[RecordType, list[object]]) -> None:
    type_, values = case
    content, places = block_of(type_, values)
    found = encode_records(table_of(type_, values), type_, length_prefixed=False)
    assert found.content.to_pybytes() == content
    assert found.offsets.tolist() == places.tolist()


@settings(deadline=None)
@given(records())
def test_slices_of_records_of_any_type_do_not_show(
    case: tuple[RecordType, list[object]],
) -> None:
    type_, values = case
    content, places = block_of(type_, values)
    first = len(values) // 3 if type_.fields else 0
    assert encoded(table_of(type_, values).slice(first), type_) == content[places[first] :]


EMPTY_RECORD = {"type": "record", "name": "e", "fields": []}
EMPTY_FIXED = {"type": "fixed", "name": "z", "size": 0}


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("null", [None, None]),
        (["null"], [(0, None), (0, None)]),
        (["int"], [(0, 5), (0, 6)]),
        (EMPTY_RECORD, [{}, {}]),
        (["null", EMPTY_RECORD], [{}, None]),
        (EMPTY_FIXED, [b"", b""]),
        (["null", EMPTY_FIXED], [b"", None]),
    ],
)
def test_types_that_hold_next_to_nothing_are_written_and_read(
    type_: object, values: list[object]
) -> None:
    schema = record(type_)
    rows = [{"f0": value} for value in values]
    content, places = block_of(schema, rows)
    table = decode_records(content, places[:-1], places[1:], schema, "test")
    assert table.equals(table_of(schema, rows))
    assert encoded(table, schema) == content


def test_records_in_the_form_of_hudi_equal_those_of_fastavro() -> None:
    text = avro_schema(SCHEMA, "t_record", "hoodie.t")
    table = pa.Table.from_pylist(ROWS * 30, schema=SCHEMA)
    assert encoded(table, parse_schema(text, "test")) == b"".join(by_fastavro(text, ROWS * 30))


def test_lengths_in_front_are_four_bytes() -> None:
    text = avro_schema(SCHEMA, "t_record", "hoodie.t")
    table = pa.Table.from_pylist(ROWS, schema=SCHEMA)
    found = encode_records(table, parse_schema(text, "test"), length_prefixed=True)
    datums = by_fastavro(text, ROWS)
    assert found.content.to_pybytes() == b"".join(
        struct.pack(">i", len(one)) + one for one in datums
    )
    assert found.offsets.tolist() == [0, len(datums[0]) + 4, sum(map(len, datums)) + 8]


def test_more_rows_than_a_chunk_holds_stay_in_order() -> None:
    table = column(range(2 * CHUNK_ROWS + 9), pa.int64())
    found = encode_records(table, record(["null", "long"]), length_prefixed=True)
    starts, ends = split_length_prefixed(found.content, table.num_rows, "test")
    again = decode_records(found.content, starts, ends, record(["null", "long"]), "test")
    assert again["f0"].to_pylist() == list(range(table.num_rows))
    assert found.offsets[1:].tolist() == ends.tolist()


def test_no_rows_are_no_bytes() -> None:
    found = encode_records(column([], pa.int32()), record("int"), length_prefixed=True)
    assert (found.content.to_pybytes(), found.offsets.tolist()) == (b"", [0])


def test_rows_without_columns_are_empty_records() -> None:
    table = column([1, 2, 3], pa.int32()).select([])
    found = encode_records(table, record(), length_prefixed=True)
    assert (found.content.to_pybytes(), found.offsets.tolist()) == (b"\x00" * 12, [0, 4, 8, 12])


def test_two_thousand_columns_are_written_in_the_order_of_the_schema() -> None:
    names = [f"f{place}" for place in range(2000)]
    table = pa.table({name: [place] for place, name in enumerate(names)})
    schema = record(*(["long"] * 2000))
    assert encoded(table.select(names[::-1]), schema) == encoded(table, schema)


@pytest.mark.parametrize(
    "type_",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.large_string()),
    ],
)
def test_texts_may_have_any_layout(type_: pa.DataType) -> None:
    values = ["a", None, "", "ü", "a"]
    plain = pa.table({"f0": pa.array(values)})
    schema = record(["null", "string"])
    other = pa.table({"f0": plain["f0"].cast(type_)})
    assert encoded(other, schema) == encoded(plain, schema)


def test_a_dictionary_of_views_is_understood() -> None:
    folded = pa.DictionaryArray.from_arrays(
        pa.array([1, None, 0]), pa.array(["x", "y"], pa.string_view())
    )
    table = pa.table({"f0": folded})
    assert encoded(table, record(["null", "string"])) == b"\x02\x02y\x00\x02\x02x"


@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2)])
def test_bytes_and_fixed_may_have_any_layout(type_: pa.DataType) -> None:
    table = column([b"ab", None, b"cd"], type_)
    fixed = {"type": "fixed", "name": "x", "size": 2}
    assert encoded(table, record(["null", "bytes"])) == b"\x02\x04ab\x00\x02\x04cd"
    assert encoded(table, record(["null", fixed])) == b"\x02ab\x00\x02cd"


@pytest.mark.parametrize(
    "type_",
    [
        pa.list_(pa.int32()),
        pa.large_list(pa.int32()),
        pa.list_(pa.int32(), 2),
        pa.list_view(pa.int32()),
        pa.large_list_view(pa.int32()),
    ],
)
def test_lists_may_have_any_layout(type_: pa.DataType) -> None:
    table = column([[9, 9], [1, 2], None, [3, None]], type_).slice(1)
    schema = record(["null", {"type": "array", "items": ["null", "int"]}])
    first, last = b"\x02\x04\x02\x02\x02\x04\x00", b"\x02\x04\x02\x06\x00\x00"
    assert encoded(table, schema) == first + b"\x00" + last


def test_chunks_and_slices_do_not_show() -> None:
    text = avro_schema(SCHEMA, "t_record", "hoodie.t")
    rows = ROWS * 3
    one = pa.Table.from_pylist([ROWS[0], *rows, ROWS[1]], schema=SCHEMA).slice(1, len(rows))
    many = pa.concat_tables([one.slice(0, 1), one.slice(1, 0), one.slice(1, 2), one.slice(3)])
    expected = b"".join(by_fastavro(text, rows))
    assert encoded(one, parse_schema(text, "test")) == expected
    assert encoded(many, parse_schema(text, "test")) == expected


def test_slices_of_nested_columns_without_nulls_do_not_show() -> None:
    shown = pa.struct(
        [
            pa.field("m", pa.map_(pa.string(), pa.int32())),
            pa.field("l", pa.list_(pa.int32())),
            pa.field("s", pa.struct([("x", pa.int32())])),
        ]
    )
    rows = [{"m": [(f"k{at}", at)], "l": [at, at], "s": {"x": at}} for at in range(5)]
    table = column(rows, shown)
    schema = parse_schema(avro_schema(table.schema, "r", "n"), "test")
    one_by_one = [encoded(column([row], shown), schema) for row in rows]
    assert encoded(table.slice(2, 2), schema) == b"".join(one_by_one[2:4])


def test_what_stands_in_place_of_a_null_is_not_written() -> None:
    behind = pa.array([b"hidden", b"seen"], pa.binary()).buffers()
    values = pa.Array.from_buffers(pa.binary(), 2, [pa.py_buffer(b"\x02"), *behind[1:]])
    assert encoded(pa.table({"f0": values}), record(["null", "bytes"])) == b"\x00\x02\x08seen"
    numbers = pa.Array.from_buffers(
        pa.int64(), 2, [pa.py_buffer(b"\x02"), pa.array([2**62, 1]).buffers()[1]]
    )
    assert encoded(pa.table({"f0": numbers}), record(["null", "long"])) == b"\x00\x02\x02"


def test_lists_hidden_behind_a_null_are_not_written() -> None:
    offsets = pa.py_buffer(struct.pack("<3i", 0, 2, 3))
    items = pa.array([7, 8, 1], pa.int32())
    lists = pa.Array.from_buffers(
        pa.list_(pa.int32()), 2, [pa.py_buffer(b"\x02"), offsets], children=[items]
    )
    schema = record(["null", {"type": "array", "items": ["null", "int"]}])
    assert encoded(pa.table({"f0": lists}), schema) == b"\x00\x02\x02\x02\x02\x00"


def test_the_null_branch_may_stand_last() -> None:
    assert encoded(column([5, None], pa.int32()), record(["int", "null"])) == b"\x00\x0a\x02"


def test_a_column_of_nulls_fits_every_optional_type() -> None:
    wide = {"type": "record", "name": "w", "fields": [{"name": "x", "type": "int"}]}
    for type_ in ("int", "string", wide, {"type": "array", "items": "int"}):
        assert encoded(column([None, None], pa.null()), record(["null", type_])) == b"\x00\x00"


def test_numbers_widen_and_narrow_as_long_as_they_fit() -> None:
    assert encoded(column([127], pa.int8()), record("long")) == b"\xfe\x01"
    assert encoded(column([127], pa.uint64()), record("int")) == b"\xfe\x01"
    assert encoded(column([1.5], pa.float32()), record("double")) == struct.pack("<d", 1.5)


def test_times_change_their_unit_as_long_as_nothing_is_lost() -> None:
    millis = record({"type": "long", "logicalType": "timestamp-millis"})
    assert encoded(column([2], pa.timestamp("s", "UTC")), millis) == b"\xa0\x1f"
    assert encoded(column([2000], pa.timestamp("us", "Asia/Tokyo")), millis) == b"\x04"


def test_decimals_in_bytes_are_as_short_as_java_writes_them() -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 38}
    values = [0, 1, -1, 127, 128, -128, -129, 255, 256, 10**38 - 1, 1 - 10**38]
    shortest = [
        one.to_bytes((one if one >= 0 else ~one).bit_length() // 8 + 1, "big", signed=True)
        for one in values
    ]
    table = column([Decimal(one) for one in values], pa.decimal128(38, 0))
    expected = b"".join(bytes([2 * len(one)]) + one for one in shortest)
    assert encoded(table, record(decimal)) == expected


def test_decimals_change_their_scale_as_long_as_nothing_is_lost() -> None:
    schema = record({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3})
    assert encoded(column([Decimal("1.5")], pa.decimal64(5, 1)), schema) == b"\x04\x05\xdc"


def test_a_union_takes_the_branch_that_is_filled() -> None:
    type_ = pa.struct([("string", pa.string()), ("int", pa.int32())])
    table = column([{"int": 3}, None, {"string": "a"}, {}], type_)
    assert encoded(table, record(["null", "int", "string"])) == b"\x02\x06" + b"\x00" + (
        b"\x04\x02a" + b"\x00"
    )


MISFITS = [
    ([2**31], pa.int64(), "int"),
    ([2**63], pa.uint64(), "long"),
    ([1.5], pa.float64(), "float"),
    ([1.0], pa.float64(), "long"),
    ([1], pa.int32(), "double"),
    ([True], pa.bool_(), "int"),
    (["1"], pa.string(), "int"),
    ([b"a"], pa.binary(), "string"),
    (["a"], pa.string(), "bytes"),
    (["C"], pa.string(), {"type": "enum", "name": "e", "symbols": ["A", "B"]}),
    ([b"abc"], pa.binary(), {"type": "fixed", "name": "x", "size": 2}),
    ([1001], pa.timestamp("us", "UTC"), {"type": "long", "logicalType": "timestamp-millis"}),
    ([1], pa.timestamp("us"), {"type": "long", "logicalType": "timestamp-micros"}),
    ([1], pa.timestamp("us", "UTC"), {"type": "long", "logicalType": "local-timestamp-micros"}),
    ([2**60], pa.timestamp("s", "UTC"), {"type": "long", "logicalType": "timestamp-micros"}),
    ([1], pa.int32(), {"type": "int", "logicalType": "date"}),
    (
        [Decimal("1.25")],
        pa.decimal128(5, 2),
        {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1},
    ),
    (
        [Decimal("100")],
        pa.decimal128(3, 0),
        {"type": "fixed", "name": "d", "size": 1, "logicalType": "decimal", "precision": 2},
    ),
    ([[1]], pa.list_(pa.int32()), "int"),
    ([1], pa.int32(), {"type": "array", "items": "int"}),
    ([1], pa.int32(), {"type": "map", "values": "int"}),
    ([{"a": 1}], pa.struct([("a", pa.int32())]), ["int", "string"]),
    (
        [{"int": 1, "string": "a"}],
        pa.struct([("int", pa.int32()), ("string", pa.string())]),
        ["int", "string"],
    ),
]


@pytest.mark.parametrize(("values", "shown", "type_"), MISFITS)
def test_a_value_without_a_place_is_refused(
    values: list[object], shown: pa.DataType, type_: object
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        encoded(column(values, shown), record(type_))
    assert (caught.value.code, caught.value.column) == ("value_does_not_fit", "f0")


@pytest.mark.parametrize("value", [10**9, 128, -129])
def test_a_decimal_wider_than_its_own_type_is_refused(value: int) -> None:
    words = pa.py_buffer(value.to_bytes(16, "little", signed=True))
    huge = pa.Array.from_buffers(pa.decimal128(2, 0), 1, [None, words])
    decimal = {"type": "fixed", "name": "d", "size": 1, "logicalType": "decimal", "precision": 2}
    with pytest.raises(InvalidRequest):
        encoded(pa.table({"f0": huge}), record(decimal))


@pytest.mark.parametrize(
    ("values", "shown", "type_", "place"),
    [
        ([1, None], pa.int32(), "int", "f0"),
        (["a", None], pa.string(), "string", "f0"),
        ([None], pa.null(), "int", "f0"),
        ([[1, None]], pa.list_(pa.int32()), {"type": "array", "items": "int"}, "f0[]"),
        ([None], pa.list_(pa.int32()), {"type": "array", "items": "int"}, "f0"),
        (
            [[("a", None)]],
            pa.map_(pa.string(), pa.int32()),
            {"type": "map", "values": "int"},
            "f0[]",
        ),
        (
            [{"x": None}],
            pa.struct([("x", pa.int32())]),
            {"type": "record", "name": "i", "fields": [{"name": "x", "type": "int"}]},
            "f0.x",
        ),
        ([None], pa.struct([("int", pa.int32())]), ["int", "string"], "f0"),
        ([{}], pa.struct([("int", pa.int32())]), ["int", "string"], "f0"),
    ],
)
def test_a_null_without_a_place_is_refused(
    values: list[object], shown: pa.DataType, type_: object, place: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        encoded(column(values, shown), record(type_))
    assert (caught.value.code, caught.value.column) == ("null_value", place)


@pytest.mark.parametrize("names", [[], ["f0", "other"], ["f0", "f0"], ["other"]])
def test_other_columns_than_those_of_the_schema_are_refused(names: list[str]) -> None:
    table = pa.Table.from_arrays([pa.array([1])] * len(names), names)
    with pytest.raises(InvalidRequest) as caught:
        encoded(table, record("long"))
    assert caught.value.code == "columns_differ"
