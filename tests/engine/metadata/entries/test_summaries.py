"""Summaries of columns: the same from rows and from a footer, and right about NaN and nulls."""

import io
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewarden.engine.metadata.entries.changes import ColumnSummary
from lakewarden.engine.metadata.entries.summaries import (
    columns_with_nan,
    first_columns,
    indexed_columns,
    summaries_of_footer,
    summaries_of_parts,
    summaries_of_rows,
)

NAN = float("nan")
TYPES = {
    "boolean": pa.array([True, False, None]),
    "int": pa.array([3, None, -5], pa.int32()),
    "long": pa.array([3, None, -(2**60)], pa.int64()),
    "float": pa.array([1.5, None, -2.25], pa.float32()),
    "double": pa.array([1.5, None, -2.25], pa.float64()),
    "text": pa.array(["b", None, "ä"]),
    "bytes": pa.array([b"\xff", None, b""]),
    "fixed": pa.array([b"ab", None, b"\x00z"], pa.binary(2)),
    "decimal": pa.array([Decimal("1.20"), None, Decimal("-999.99")], pa.decimal128(5, 2)),
    "wide": pa.array([Decimal(10) ** 37, None, Decimal(-1)], pa.decimal128(38, 0)),
    "day": pa.array([date(1969, 1, 1), None, date(2400, 2, 29)]),
    "moment": pa.array([datetime(1969, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
    "local": pa.array([datetime(2024, 1, 1), None], pa.timestamp("us")),
}


def written(rows: pa.Table, **options: object) -> pq.FileMetaData:
    out = io.BytesIO()
    pq.write_table(rows, out, **options)
    return pq.ParquetFile(io.BytesIO(out.getvalue())).metadata


def bounds(summary: ColumnSummary) -> tuple[object, object]:
    assert summary.minimum is not None
    assert summary.maximum is not None
    return summary.minimum.as_py(), summary.maximum.as_py()


@pytest.mark.parametrize("kind", TYPES)
def test_rows_and_footer_give_the_same(kind: str) -> None:
    rows = pa.table({"c": TYPES[kind]})
    by_rows = summaries_of_rows(rows, ["c"])["c"]
    by_footer = summaries_of_footer(written(rows), ["c"])["c"]
    assert bounds(by_rows) == bounds(by_footer)
    assert (by_rows.value_count, by_rows.null_count) == (
        by_footer.value_count,
        by_footer.null_count,
    )
    assert (by_rows.packed_bytes, by_rows.unpacked_bytes) == (0, 0)
    assert by_footer.packed_bytes > 0
    assert by_footer.unpacked_bytes > 0


@pytest.mark.parametrize("kind", TYPES)
def test_only_nulls_have_null_bounds_of_the_type(kind: str) -> None:
    rows = pa.table({"c": pa.nulls(3, TYPES[kind].type)})
    for summary in (
        summaries_of_rows(rows, ["c"])["c"],
        summaries_of_footer(written(rows), ["c"])["c"],
    ):
        assert bounds(summary) == (None, None)
        assert summary.minimum is not None
        assert summary.minimum.type == TYPES[kind].type
        assert (summary.value_count, summary.null_count) == (3, 3)


def test_no_rows_at_all_show_nothing_of_any_column() -> None:
    assert summaries_of_rows(pa.table({}), ["c"]) == {"c": ColumnSummary(None, None, 0, 0)}


def test_a_file_without_rows_has_no_summaries() -> None:
    rows = pa.table({"c": pa.array([], pa.int64())})
    assert summaries_of_footer(written(rows), ["c"]) == {}


def test_nested_columns_have_no_summaries() -> None:
    rows = pa.table(
        {"c": [[1]], "s": [{"x": 1}], "m": pa.array([[("k", 1)]], pa.map_("string", "int64"))}
    )
    assert summaries_of_rows(rows, ["c", "s", "m"]) == {}
    assert summaries_of_footer(written(rows), ["c", "s", "m"]) == {}


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
def test_nan_is_the_maximum_wherever_it_is(type_: pa.DataType) -> None:
    rows = pa.table({"c": pa.array([1.0, NAN, -1.0], type_)})
    for summary in (
        summaries_of_rows(rows, ["c"])["c"],
        summaries_of_footer(written(rows), ["c"], with_nan=columns_with_nan(rows))["c"],
    ):
        low, high = bounds(summary)
        assert low == -1.0
        assert isinstance(high, float)
        assert math.isnan(high)


def test_nan_is_the_minimum_where_there_is_nothing_else() -> None:
    rows = pa.table({"c": [NAN, None]})
    summary = summaries_of_rows(rows, ["c"])["c"]
    assert all(isinstance(one, float) and math.isnan(one) for one in bounds(summary))


def test_a_footer_does_not_tell_of_columns_that_have_only_nan_or_very_long_values() -> None:
    rows = pa.table({"c": ["a" * 100_000, "b"], "n": [1, 2], "v": [NAN, NAN]})
    reported = summaries_of_footer(written(rows), ["c", "n", "v"], with_nan=columns_with_nan(rows))
    assert reported.keys() == {"n"}


def test_dictionaries_count_as_their_values() -> None:
    rows = pa.table({"c": pa.array(["b", "a"]).dictionary_encode()})
    assert bounds(summaries_of_rows(rows, ["c"])["c"]) == ("a", "b")


def test_the_first_columns_of_supported_types_are_indexed_behind_three_meta_columns() -> None:
    columns = [(f"c{number}", pa.int64()) for number in range(40)]
    schema = pa.schema([("list", pa.list_(pa.int64())), *columns])
    found = first_columns(schema)
    assert found[:3] == ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
    assert found[3:] == tuple(f"c{number}" for number in range(32))


def test_columns_that_came_by_rule_grow_with_the_schema() -> None:
    before = pa.schema([("a", pa.int64())])
    after = pa.schema([("a", pa.int64()), ("b", pa.string())])
    assert indexed_columns(first_columns(before), after, before=before) == first_columns(after)


def test_columns_that_somebody_chose_stay() -> None:
    before = pa.schema([("a", pa.int64()), ("b", pa.string())])
    after = pa.schema([*before, pa.field("c", pa.string())])
    chosen = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key", "b")
    assert indexed_columns(chosen, after, before=before) == chosen


def test_a_column_that_was_dropped_is_not_summarised() -> None:
    assert indexed_columns(("a", "b"), pa.schema([("b", pa.int64())])) == ("b",)


@pytest.mark.parametrize(
    "values",
    [
        *TYPES.values(),
        pa.array([1.5, NAN, None, -2.0, NAN, 3.0]),
        pa.array([NAN] * 4),
        pa.array([None] * 5, pa.string()),
        pa.array(["x", "a", "x", None]).dictionary_encode(),
    ],
)
@pytest.mark.parametrize("size", [1, 2])
def test_parts_have_the_summary_of_all_their_rows(values: pa.Array, size: int) -> None:
    rows = pa.table({"c": values})
    parts = [rows.slice(start, size) for start in range(0, len(rows), size)]
    found = summaries_of_parts([rows.slice(0, 0), *parts], ["c"])["c"]
    # No NaN equals another one; their texts do.
    assert str(found) == str(summaries_of_rows(rows, ["c"])["c"])
