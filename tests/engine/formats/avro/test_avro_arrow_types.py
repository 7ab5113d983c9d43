"""Avro types as Arrow types and back, in the form that Spark and Hudi use."""

import json

import pyarrow as pa
import pytest

from lakewarden.engine.formats.avro.arrow_types import (
    arrow_schema,
    avro_schema,
    branch_names,
    fixed_decimal_size,
    record_names,
)
from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.avro.types import UnionType
from lakewarden.engine.kernel.errors import InvalidRequest

STRUCT = pa.struct([pa.field("x", pa.int32(), nullable=False), pa.field("y", pa.string())])
RECORD = {
    "type": "record",
    "name": "inner",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": ["null", "string"]}],
}


def shown(type_: object) -> pa.Field:
    text = json.dumps({"type": "record", "name": "r", "fields": [{"name": "f", "type": type_}]})
    return arrow_schema(parse_schema(text, "test")).field(0)


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("boolean", pa.bool_()),
        ("int", pa.int32()),
        ("long", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("bytes", pa.binary()),
        ("string", pa.string()),
        ({"type": "int", "logicalType": "date"}, pa.date32()),
        ({"type": "int", "logicalType": "time-millis"}, pa.time32("ms")),
        ({"type": "long", "logicalType": "time-micros"}, pa.time64("us")),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ms", "UTC")),
        ({"type": "long", "logicalType": "timestamp-micros"}, pa.timestamp("us", "UTC")),
        ({"type": "long", "logicalType": "timestamp-nanos"}, pa.timestamp("ns", "UTC")),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, pa.timestamp("ms")),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, pa.timestamp("us")),
        ({"type": "long", "logicalType": "local-timestamp-nanos"}, pa.timestamp("ns")),
        ({"type": "string", "logicalType": "uuid"}, pa.string()),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, pa.string()),
        ({"type": "fixed", "name": "x", "size": 7}, pa.binary(7)),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 3},
            pa.decimal128(38, 3),
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 3},
            pa.decimal256(39, 3),
        ),
        ({"type": "array", "items": "int"}, pa.list_(pa.field("e", pa.int32(), nullable=False))),
        ({"type": "array", "items": ["null", "int"]}, pa.list_(pa.int32())),
        ({"type": "map", "values": ["null", "int"]}, pa.map_(pa.string(), pa.int32())),
        (RECORD, STRUCT),
    ],
)
def test_a_type_has_its_column_type(type_: object, expected: pa.DataType) -> None:
    assert shown(type_) == pa.field("f", expected, nullable=False)


@pytest.mark.parametrize("branches", [["null", "int"], ["int", "null"]])
def test_an_optional_type_is_a_nullable_column(branches: list[str]) -> None:
    assert shown(branches) == pa.field("f", pa.int32())


def test_a_general_union_is_a_struct_of_its_branches() -> None:
    union = shown(["null", "int", RECORD, {"type": "array", "items": "string"}])
    assert union.nullable
    assert [field.name for field in union.type] == ["int", "inner", "array"]
    assert all(field.nullable for field in union.type)
    assert union.type.field("inner").type == STRUCT


def test_a_union_without_null_is_a_struct_that_is_never_null() -> None:
    assert not shown(["int", "string"]).nullable


def test_branches_of_one_short_name_show_their_full_names() -> None:
    fixed = [{"type": "fixed", "name": f"{space}.x", "size": 1} for space in "ab"]
    text = json.dumps(
        {"type": "record", "name": "r", "fields": [{"name": "f", "type": [*fixed, "int"]}]}
    )
    union = parse_schema(text, "test").fields[0].type
    assert isinstance(union, UnionType)
    assert branch_names(union) == ("a.x", "b.x", "int")


def test_a_decimal_of_more_than_76_digits_is_refused() -> None:
    with pytest.raises(InvalidRequest) as caught:
        shown({"type": "bytes", "logicalType": "decimal", "precision": 77})
    assert caught.value.code == "unsupported_decimal"


def test_record_names_mask_what_avro_forbids() -> None:
    assert record_names("orders") == ("orders_record", "hoodie.orders")
    assert record_names("9-a.b") == ("____a__b_record", "hoodie.____a__b")


def test_decimals_take_the_fewest_bytes_that_hold_all_their_numbers() -> None:
    for precision in range(1, 77):
        largest = 10**precision - 1
        size = fixed_decimal_size(precision)
        largest.to_bytes(size, "big", signed=True)
        with pytest.raises(OverflowError):
            largest.to_bytes(size - 1, "big", signed=True)


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (pa.bool_(), "boolean"),
        (pa.int8(), "int"),
        (pa.int32(), "int"),
        (pa.uint16(), "int"),
        (pa.uint32(), "long"),
        (pa.int64(), "long"),
        (pa.float16(), "float"),
        (pa.float32(), "float"),
        (pa.float64(), "double"),
        (pa.large_string(), "string"),
        (pa.string_view(), "string"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.large_binary(), "bytes"),
        (pa.binary_view(), "bytes"),
        (pa.date32(), {"type": "int", "logicalType": "date"}),
        (pa.date64(), {"type": "int", "logicalType": "date"}),
        (pa.time32("ms"), {"type": "int", "logicalType": "time-millis"}),
        (pa.time64("us"), {"type": "long", "logicalType": "time-micros"}),
        (pa.timestamp("s", "UTC"), {"type": "long", "logicalType": "timestamp-millis"}),
        (pa.timestamp("us", "Asia/Tokyo"), {"type": "long", "logicalType": "timestamp-micros"}),
        (pa.timestamp("ns"), {"type": "long", "logicalType": "local-timestamp-nanos"}),
        (pa.list_(pa.int32()), {"type": "array", "items": ["null", "int"]}),
        (pa.large_list(pa.int32()), {"type": "array", "items": ["null", "int"]}),
        (pa.list_(pa.int32(), 3), {"type": "array", "items": ["null", "int"]}),
        (pa.map_(pa.string(), pa.float64()), {"type": "map", "values": ["null", "double"]}),
        (
            pa.binary(3),
            {"type": "fixed", "name": "fixed", "namespace": "hoodie.t.t_record.f", "size": 3},
        ),
        (
            pa.decimal128(5, 2),
            {
                "type": "fixed",
                "name": "fixed",
                "namespace": "hoodie.t.t_record.f",
                "size": 3,
                "logicalType": "decimal",
                "precision": 5,
                "scale": 2,
            },
        ),
    ],
)
def test_a_column_type_has_its_avro_type(type_: pa.DataType, expected: object) -> None:
    schema = pa.schema([pa.field("f", type_, nullable=False)])
    written = json.loads(avro_schema(schema, *record_names("t")))
    assert written["fields"] == [{"name": "f", "type": expected}]


def test_a_nullable_column_is_a_union_that_defaults_to_null() -> None:
    text = avro_schema(pa.schema([pa.field("f", pa.int64())]), "t_record", "hoodie.t")
    assert text == (
        '{"type":"record","name":"t_record","namespace":"hoodie.t",'
        '"fields":[{"name":"f","type":["null","long"],"default":null}]}'
    )


@pytest.mark.parametrize(
    "type_",
    [pa.uint64(), pa.null(), pa.duration("s"), pa.map_(pa.int32(), pa.int32()), pa.time64("ns")],
)
def test_a_column_type_without_an_avro_type_is_refused(type_: pa.DataType) -> None:
    with pytest.raises(InvalidRequest) as caught:
        avro_schema(pa.schema([pa.field("f", type_)]), "r", "n")
    assert caught.value.code == "unsupported_column_type"


@pytest.mark.parametrize("name", ["", "1a", "²a", "a-b", "a b", "😀", "𝐱"])
def test_a_column_name_that_avro_forbids_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        avro_schema(pa.schema([pa.field(name, pa.int32())]), "r", "n")
    assert caught.value.code == "unsupported_column_name"


def test_a_column_name_may_have_letters_of_any_script() -> None:
    schema = pa.schema([pa.field(name, pa.int32()) for name in ("é", "价格", "ü_٣")])
    assert "价格" in json.loads(avro_schema(schema, "r", "n"))["fields"][1]["name"]


def test_columns_come_back_as_they_were() -> None:
    schema = pa.schema(
        [
            pa.field("a", pa.string()),
            pa.field("b", pa.decimal128(38, 10)),
            pa.field("c", pa.struct([pa.field("d", pa.list_(pa.struct([("e", pa.binary(4))])))])),
            pa.field("m", pa.map_(pa.string(), STRUCT), nullable=False),
            pa.field("t", pa.timestamp("us", "UTC")),
            pa.field("n", pa.timestamp("us")),
        ]
    )
    assert arrow_schema(parse_schema(avro_schema(schema, "r", "n"), "test")) == schema
