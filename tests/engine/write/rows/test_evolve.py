"""Schemas after rows with other columns have come in."""

import json

import pyarrow as pa
import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.schema import META_COLUMNS, TableSchema, schema_from
from lakewarden.engine.write.rows.evolve import (
    columns_widened,
    evolved,
    not_nullable,
    with_meta_text,
)

EMPTY = TableSchema(pa.schema([]), None)


LARGEST = {
    pa.int64(): 1 << 40,
    pa.float64(): 0.1,
    pa.large_list(pa.int64()): [1 << 40],
    pa.struct({"b": pa.string(), "a": pa.int64()}): {"b": "x", "a": 1 << 40},
}


def made(columns: dict[str, pa.DataType]) -> TableSchema:
    return evolved(EMPTY, pa.schema(columns), allow_missing=False, table_name="t-1")


def after(
    current: TableSchema, columns: dict[str, pa.DataType], *, allow_missing: bool = False
) -> TableSchema:
    """The schema after rows whose values only the wider one of two types can hold."""
    return evolved(
        current,
        pa.schema(columns),
        allow_missing=allow_missing,
        table_name="t-1",
        evolves=True,
        rows=large(columns),
    )


def large(columns: dict[str, pa.DataType]) -> pa.Table:
    return pa.table(
        {name: pa.array([LARGEST.get(type_)], type_) for name, type_ in columns.items()}
    )


def refusal(current: TableSchema, columns: dict[str, pa.DataType]) -> str:
    with pytest.raises(InvalidRequest) as refused:
        after(current, columns)
    return refused.value.code


def test_a_new_table_takes_the_rows_schema_under_hudis_names() -> None:
    schema = made({"id": pa.string(), "n": pa.int32()})
    record = json.loads(schema.avro_text or "")
    assert (record["name"], record["namespace"]) == ("t__1_record", "hoodie.t__1")
    assert record["fields"][1] == {"name": "n", "type": ["null", "int"], "default": None}


def test_nothing_new_keeps_the_text_and_column_order_is_free() -> None:
    text = '{"type":"record","name":"r","fields":[{"name":"a","type":"long","doc":"x"},' + (
        '{"name":"b","type":["string","null"]}]}'
    )
    schema = schema_from(text, "p")
    assert after(schema, {"b": pa.large_string(), "a": pa.int32()}).avro_text == text


def test_new_columns_come_last_and_may_be_null() -> None:
    schema = made({"id": pa.string()})
    grown = after(schema, {"new": pa.float16(), "id": pa.string()})
    assert grown.columns == pa.schema({"id": pa.string(), "new": pa.float32()})
    assert [field["name"] for field in json.loads(grown.avro_text or "")["fields"]] == ["id", "new"]


@pytest.mark.parametrize(
    ("old", "incoming", "new"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int32(), pa.float64(), pa.float64()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.int64(), pa.int32(), pa.int64()),
        (pa.int64(), pa.uint8(), pa.int64()),
        (pa.float64(), pa.float32(), pa.float64()),
        (pa.decimal128(12, 2), pa.decimal128(5, 1), pa.decimal128(12, 2)),
        (pa.timestamp("us", "UTC"), pa.timestamp("ns", "Europe/Oslo"), pa.timestamp("us", "UTC")),
        (pa.string(), pa.null(), pa.string()),
        (
            pa.list_(pa.int32()),
            pa.large_list(pa.int64()),
            pa.list_(pa.field("element", pa.int64())),
        ),
        (
            pa.struct({"a": pa.int32()}),
            pa.struct({"b": pa.string(), "a": pa.int64()}),
            pa.struct({"a": pa.int64(), "b": pa.string()}),
        ),
    ],
)
def test_types_that_go_together(old: pa.DataType, incoming: pa.DataType, new: pa.DataType) -> None:
    schema = after(made({"id": pa.string(), "v": old}), {"id": pa.string(), "v": incoming})
    assert schema.columns.field("v").type == new
    # The text says the same as the columns.
    assert schema_from(schema.avro_text or "", "p").columns.field("v").type == new


@pytest.mark.parametrize(
    ("old", "incoming"),
    [
        (pa.int64(), pa.string()),
        (pa.string(), pa.int64()),
        (pa.decimal128(10, 2), pa.float64()),
        (pa.float64(), pa.decimal128(10, 2)),
        (pa.int32(), pa.bool_()),
        (pa.timestamp("us", "UTC"), pa.timestamp("us")),
        (pa.date32(), pa.timestamp("us")),
        (pa.bool_(), pa.int32()),
        (pa.list_(pa.string()), pa.string()),
    ],
)
def test_types_that_do_not(old: pa.DataType, incoming: pa.DataType) -> None:
    with pytest.raises(InvalidRequest) as refused:
        after(made({"v": old}), {"v": incoming})
    assert refused.value.code == "incompatible_type"
    assert refused.value.parameters["column"].startswith("v")


@pytest.mark.parametrize(
    "kind",
    [
        pa.uint64(),
        pa.time64("us"),
        pa.duration("s"),
        pa.null(),
        pa.struct([]),
        pa.decimal256(50, 2),
        pa.map_(pa.int32(), pa.string()),
        pa.month_day_nano_interval(),
        pa.list_(pa.uint64()),
    ],
)
def test_types_that_no_table_has_are_refused(kind: pa.DataType) -> None:
    assert refusal(EMPTY, {"v": kind}) == "unsupported_column_type"


@pytest.mark.parametrize(
    ("kind", "kept"),
    [
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.binary(4), pa.binary()),
        (pa.date64(), pa.date32()),
        (pa.timestamp("s"), pa.timestamp("us")),
        (pa.decimal256(30, 2), pa.decimal128(30, 2)),
    ],
)
def test_layouts_are_normalised(kind: pa.DataType, kept: pa.DataType) -> None:
    assert made({"v": kind}).columns.field("v").type == kept


def test_missing_columns_are_refused_unless_null_is_meant() -> None:
    schema = made({"id": pa.string(), "v": pa.int32()})
    assert refusal(schema, {"id": pa.string()}) == "missing_columns"
    assert after(schema, {"id": pa.string()}, allow_missing=True) == schema


def test_missing_columns_that_may_not_be_null_may_be_from_then_on() -> None:
    schema = schema_from('{"type":"record","name":"r","fields":[{"name":"a","type":"int"}]}', "p")
    assert not_nullable(schema) == {"a"}
    relaxed = after(schema, {"b": pa.string()}, allow_missing=True)
    assert not not_nullable(relaxed)


def test_names_that_differ_in_case_are_refused() -> None:
    schema = made({"id": pa.string()})
    assert refusal(schema, {"ID": pa.string()}) == "ambiguous_column"
    assert refusal(EMPTY, {"a": pa.string(), "A": pa.string()}) == "ambiguous_column"


def test_rows_without_columns_are_refused() -> None:
    assert refusal(EMPTY, {}) == "no_columns"
    assert refusal(EMPTY, dict.fromkeys(META_COLUMNS, pa.string())) == "no_columns"


def test_meta_columns_of_rows_are_none_of_the_tables() -> None:
    schema = made({META_COLUMNS[0]: pa.string(), "id": pa.string()})
    assert schema.columns.names == ["id"]


def test_files_have_the_meta_columns_in_front() -> None:
    fields = json.loads(with_meta_text(made({"id": pa.string()})))["fields"]
    assert [field["name"] for field in fields] == [*META_COLUMNS, "id"]
    assert fields[0] == {
        "name": "_hoodie_commit_time",
        "type": ["null", "string"],
        "doc": "",
        "default": None,
    }


def test_two_thousand_columns() -> None:
    columns = {f"c{number}": pa.int32() for number in range(2000)}
    grown = after(made(columns), {**columns, "c0": pa.int64(), "more": pa.string()})
    assert len(grown.columns) == 2001


COLUMN_CHANGES = [
    ({"v": pa.int32()}, {"v": pa.int32(), "x": pa.string()}, "unknown_columns"),
    (
        {"v": pa.struct({"a": pa.int32()})},
        {"v": pa.struct({"a": pa.int32(), "b": pa.int32()})},
        "unknown_columns",
    ),
    ({"v": pa.int32()}, {"v": pa.string()}, "incompatible_type"),
]


@pytest.mark.parametrize(("old", "incoming", "code"), COLUMN_CHANGES)
def test_columns_change_only_when_somebody_asks(
    old: dict[str, pa.DataType], incoming: dict[str, pa.DataType], code: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        evolved(made(old), pa.schema(incoming), allow_missing=False, table_name="t-1")
    assert refused.value.code == code


@pytest.mark.parametrize("evolves", [True, False])
def test_a_longer_type_whose_values_fit_leaves_the_column_as_it_is(evolves: bool) -> None:
    rows = pa.table({"v": pa.array([1, None, -5], pa.int64())})
    schema = made({"v": pa.int32()})
    kept = evolved(
        schema, rows.schema, allow_missing=False, table_name="t-1", evolves=evolves, rows=rows
    )
    assert kept == schema


def test_rows_that_are_elsewhere_widen_by_their_type_but_longs_tell_nothing() -> None:
    schema = made({"a": pa.int32(), "b": pa.int32(), "c": pa.float32()})
    incoming = pa.schema({"a": pa.int64(), "b": pa.float64(), "c": pa.float64()})
    grown = evolved(schema, incoming, allow_missing=False, table_name="t-1", evolves=True)
    assert grown.columns.types == [pa.int32(), pa.float64(), pa.float64()]
    assert columns_widened(schema, grown) == ("b", "c")
