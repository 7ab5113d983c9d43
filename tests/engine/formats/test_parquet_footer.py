"""Footers tell record keys and value ranges, for every type and over all row groups."""

import io
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lakewarden.engine.formats.bloom import build_bloom
from lakewarden.engine.formats.parquet_footer import (
    FooterRange,
    KeyFooter,
    column_ranges,
    key_footer,
)

VALUES: dict[str, pa.Array] = {
    "boolean": pa.array([True, False, None]),
    "tiny": pa.array([-3, 4, None], pa.int8()),
    "unsigned": pa.array([1, (1 << 32) - 1, None], pa.uint32()),
    "long": pa.array([-(1 << 62), 1 << 62, None]),
    "float": pa.array([1.5, -0.5, None], pa.float32()),
    "double": pa.array([1e300, -1e300, None]),
    "text": pa.array(["b", "é", None]),
    "bytes": pa.array([b"\xff", b"\x00", None]),
    "fixed": pa.array([b"ab", b"yz", None], pa.binary(2)),
    "day": pa.array([date(1960, 3, 1), date(2024, 2, 29), None]),
    "at": pa.array([datetime(2024, 2, 29, tzinfo=UTC), None, None], pa.timestamp("us", "UTC")),
    "nanoseconds": pa.array([1, 1_000_001, None], pa.timestamp("ns")),
    "beyond Python": pa.array([1 << 60, 1 << 62, None], pa.timestamp("us")),
    "hour": pa.array([time(1), time(23, 59), None], pa.time64("us")),
    "small decimal": pa.array([Decimal("-1.50"), Decimal("2.25"), None], pa.decimal128(5, 2)),
    "long decimal": pa.array(
        [Decimal("-123456789012345678901234567890123456.55"), Decimal(1), None],
        pa.decimal128(38, 2),
    ),
}


def footer_of(table: pa.Table, *, row_group_size: int = 1000) -> pq.FileMetaData:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=row_group_size, store_schema=False)
    return pq.ParquetFile(io.BytesIO(sink.getvalue())).metadata


def ranges_of(table: pa.Table, *, row_group_size: int = 1000) -> dict[str, FooterRange]:
    found = column_ranges(footer_of(table, row_group_size=row_group_size))
    return {column.name: column for column in found}


def raw(scalar: pa.Scalar | None) -> object:
    """A scalar in a form that can be compared even beyond Python's calendar."""
    return None if scalar is None else (str(scalar.type), pa.array([scalar]).to_string())


@pytest.mark.parametrize("row_group_size", [1, 2, 1000])
@pytest.mark.parametrize("name", VALUES)
def test_bounds_of_every_type(name: str, row_group_size: int) -> None:
    values = VALUES[name]
    found = ranges_of(pa.table({name: values}), row_group_size=row_group_size)[name]
    order = values.view(pa.int64()) if pa.types.is_timestamp(values.type) else values
    bounds = pc.array_sort_indices(order)
    count = len(values) - values.null_count
    assert raw(found.minimum) == raw(values[bounds[0].as_py()])
    assert raw(found.maximum) == raw(values[bounds[count - 1].as_py()])
    assert (found.value_count, found.null_count) == (3, values.null_count)


def test_sizes_are_added_up_over_row_groups() -> None:
    table = pa.table({"long": list(range(1000))})
    metadata = footer_of(table, row_group_size=300)
    (found,) = column_ranges(metadata)
    chunks = [metadata.row_group(number).column(0) for number in range(4)]
    assert found.packed_bytes == sum(chunk.total_compressed_size for chunk in chunks)
    assert found.unpacked_bytes == sum(chunk.total_uncompressed_size for chunk in chunks)


def test_a_column_of_nulls_has_no_bounds() -> None:
    found = ranges_of(pa.table({"text": pa.array([None, None], pa.string())}))["text"]
    assert (found.minimum, found.maximum, found.null_count) == (None, None, 2)


def test_a_row_group_of_nulls_takes_no_bounds_away() -> None:
    found = ranges_of(pa.table({"long": [None, 3]}), row_group_size=1)["long"]
    assert found.minimum == found.maximum == pa.scalar(3)


def test_a_row_group_that_tells_no_bounds_takes_them_away() -> None:
    table = pa.table({"double": [1.0, float("nan")]})
    found = ranges_of(table, row_group_size=1)["double"]
    assert (found.minimum, found.maximum) == (None, None)


def test_a_file_without_rows_has_neither_bounds_nor_nulls() -> None:
    found = ranges_of(pa.table({"long": pa.array([], pa.int64())}))["long"]
    assert (found.value_count, found.null_count, found.minimum) == (0, 0, None)


def test_a_file_without_statistics_tells_counts_alone() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"long": [1, None]}), sink, write_statistics=False)
    (found,) = column_ranges(pq.ParquetFile(io.BytesIO(sink.getvalue())).metadata)
    assert (found.value_count, found.null_count, found.minimum) == (2, None, None)


def test_nested_columns_have_dotted_names_and_the_types_of_their_leaves() -> None:
    table = pa.table(
        {
            "st": pa.array([{"x": 1, "y": {"z": "a"}}]),
            "list": pa.array([[Decimal("1.5")]], pa.list_(pa.decimal128(4, 1))),
            "map": pa.array([[("k", 1.5)]], pa.map_(pa.string(), pa.float64())),
            "last": pa.array([7]),
        }
    )
    found = ranges_of(table)
    assert {name: str(column.minimum) for name, column in found.items()} == {
        "st.x": "1",
        "st.y.z": "a",
        "list.list.element": "1.5",
        "map.key_value.key": "k",
        "map.key_value.value": "1.5",
        "last": "7",
    }


def test_a_bound_that_is_no_text_is_left_out() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"text": ["aa"]}), sink, use_dictionary=False, store_schema=False)
    damaged = sink.getvalue().replace(b"aa", b"\xff\xff")
    (found,) = column_ranges(pq.ParquetFile(io.BytesIO(damaged)).metadata)
    assert found.minimum is None


@pytest.mark.parametrize("is_empty", [False, True])
def test_a_key_footer_arrives_in_the_file(is_empty: bool) -> None:
    keys = pa.array([] if is_empty else ["b", "a"], pa.string())
    filter_ = build_bloom(keys, entries=100)
    bounds = (None, None) if is_empty else ("a", "b")
    footer = KeyFooter(filter_.text(), filter_.type_code, *bounds)
    table = pa.table({"_hoodie_record_key": keys})
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(footer.key_values())
    found = key_footer(pq.ParquetFile(io.BytesIO(sink.getvalue())).metadata)
    assert found == footer
    bloom = found.bloom_filter("some.parquet")
    assert bloom is not None
    assert bloom.might_contain(keys).all()


def test_a_file_without_key_footer_has_an_empty_one() -> None:
    found = key_footer(footer_of(pa.table({"long": [1]})))
    assert found == KeyFooter()
    assert found.bloom_filter("some.parquet") is None
    assert not found.key_values()
