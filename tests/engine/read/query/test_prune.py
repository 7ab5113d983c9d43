"""Pruning skips what cannot match, and only that."""

import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakewarden.engine.file_groups.file_names import BaseFile, LogFile
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.metadata.reading.column_stats import ColumnRange
from lakewarden.engine.read.merge.predicate import bind_filter
from lakewarden.engine.read.query.prune import prune_partitions, prune_slices
from lakewarden.engine.table.config import PartitionField, PartitionScheme

SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("s", pa.string()),
        ("x", pa.float64()),
        ("d", pa.date32()),
        ("m", pa.decimal128(12, 2)),
        ("p", pa.string()),
        ("k", pa.int32()),
    ]
)
F = pc.field


def span(low: object, high: object, *, nulls: int = 0, rows: int = 10) -> ColumnRange:
    return ColumnRange(pa.scalar(low), pa.scalar(high), nulls, rows)


def slice_of(*logs: str) -> FileSlice:
    base = BaseFile("b", "f", "0", "10", "parquet", 1)
    return FileSlice("", "f", "10", base, tuple(LogFile(n, "f", "11", 1, "0", 1) for n in logs))


def is_kept(
    expression: pc.Expression, ranges: dict[str, dict[str, ColumnRange]], *logs: str
) -> bool:
    predicate = bind_filter(expression, SCHEMA)
    assert predicate is not None
    kept, skipped = prune_slices([slice_of(*logs)], {"": ranges}, SCHEMA, predicate)
    assert len(kept) + len(skipped) == 1
    return bool(kept)


@pytest.mark.parametrize(
    ("expression", "kept"),
    [
        (F("n") == 5, True),
        (F("n") == 11, False),
        (F("n") > 10, False),
        (F("n") >= 10, True),
        (F("n").isin([20, 30]), False),
        (F("n").is_null(), False),
        ((F("n") > 10) | (F("s") == "b"), True),
        ((F("n") > 10) & (F("s") == "b"), False),
        (~(F("n") <= 10), False),
        (F("s") == "zz", False),
        (F("k") == 1, True),
    ],
)
def test_bounds_decide_and_unknown_columns_keep(expression: pc.Expression, kept: bool) -> None:
    assert is_kept(expression, {"b": {"n": span(1, 10), "s": span("a", "f")}}) is kept


def test_column_with_nulls_is_pruned_by_value_and_kept_for_null() -> None:
    ranges = {"b": {"n": span(1, 10, nulls=3)}}
    assert not is_kept(F("n") > 10, ranges)
    assert is_kept(F("n").is_null(), ranges)


def test_column_of_nulls_only() -> None:
    ranges = {"b": {"n": ColumnRange(None, None, 10, 10)}}
    assert not is_kept(F("n") > 0, ranges)
    assert is_kept(F("n").is_null(), ranges)


def test_log_values_count_and_a_log_without_statistics_keeps_the_slice() -> None:
    base, log = {"n": span(1, 10)}, {"n": span(50, 60)}
    assert is_kept(F("n") == 55, {"b": base, "l": log}, "l")
    assert not is_kept(F("n") == 70, {"b": base, "l": log}, "l")
    assert is_kept(F("n") == 70, {"b": base}, "l")


def test_delete_only_log_adds_nothing() -> None:
    ranges = {"b": {"n": span(1, 10)}, "l": {"n": ColumnRange(None, None, 0, 0)}}
    assert not is_kept(F("n") == 70, ranges, "l")


def test_zero_bounds_of_doubles_are_not_trusted_since_a_nan_may_hide_there() -> None:
    assert is_kept(F("x") == 5.0, {"b": {"x": span(0.0, 0.0)}})
    assert is_kept(F("x") == 5.0, {"b": {"x": span(-0.0, 3.0)}})
    assert not is_kept(F("x") == 5.0, {"b": {"x": span(1.0, 3.0)}})


def test_text_that_java_and_arrow_order_differently_is_not_trusted() -> None:
    assert is_kept(F("s") == "\U0001f600", {"b": {"s": span("a", "\ufffd")}})


def test_statistics_of_a_narrower_number_type_still_prune() -> None:
    narrow = ColumnRange(pa.scalar(1, pa.int32()), pa.scalar(10, pa.int32()), 0, 10)
    assert not is_kept(F("n") == 11, {"b": {"n": narrow}})


def test_statistics_from_before_a_number_became_text_do_not_prune() -> None:
    assert is_kept(F("s") == "5", {"b": {"s": span(10, 20)}})


def test_base_and_log_statistics_of_unlike_types_do_not_prune() -> None:
    assert is_kept(F("s") == "zz", {"b": {"s": span(1, 2)}, "l": {"s": span("a", "b")}}, "l")


def test_dates_and_decimals() -> None:
    day = datetime.date
    assert not is_kept(
        F("d") > day(2025, 1, 1), {"b": {"d": span(day(2024, 1, 1), day(2024, 2, 1))}}
    )
    ranges = {"b": {"m": span(Decimal("1.00"), Decimal("2.50"))}}
    assert not is_kept(F("m") > Decimal("3.00"), ranges)
    assert is_kept(F("m") > Decimal("2.00"), ranges)


SCHEME = PartitionScheme((PartitionField("p"), PartitionField("k")), hive_style=True)
PATHS = ("p=a/k=1", "p=a/k=2", "p=__HIVE_DEFAULT_PARTITION__/k=1", "p=b/k=x")


@pytest.mark.parametrize(
    ("expression", "kept"),
    [
        (F("p") == "a", ["p=a/k=1", "p=a/k=2"]),
        (F("p") != "a", ["p=b/k=x"]),
        (F("p").is_null(), ["p=__HIVE_DEFAULT_PARTITION__/k=1"]),
        # A value that is no number says nothing about the column, so its partition stays.
        (F("k") == 2, ["p=a/k=2", "p=b/k=x"]),
        (F("n") == 2, list(PATHS)),
        ((F("p") == "a") & (F("n") > 3), ["p=a/k=1", "p=a/k=2"]),
    ],
)
def test_partitions(expression: pc.Expression, kept: list[str]) -> None:
    predicate = bind_filter(expression, SCHEMA)
    assert predicate is not None
    found, skipped = prune_partitions(PATHS, SCHEME, SCHEMA, predicate)
    assert list(found) == kept
    assert {item.partition for item in skipped} == set(PATHS) - set(kept)
    assert all(item.reason for item in skipped)


@pytest.mark.parametrize(
    ("low", "high"), [(-5.0, 9.0), (0.0, 9.0), (-5.0, 0.0), (2.0, float("nan"))]
)
def test_bounds_around_zero_or_beside_a_nan_may_have_left_values_out(
    low: float, high: float
) -> None:
    """Java's row groups with a NaN have 0.0 for both bounds, which others then swallow."""
    ranges = {"b": {"x": span(low, high)}, "l": {"x": span(1.0, 1.0)}}
    assert is_kept(F("x") == 100.0, ranges)
    assert is_kept(F("x") == 100.0, ranges, "l")
    assert not is_kept(F("x") == 100.0, {"b": {"x": span(2.0, 9.0)}})


def test_a_nan_that_bounds_do_not_tell_of_is_not_left_out() -> None:
    ranges = {"b": {"x": span(2.0, 2.0)}}
    assert is_kept(F("x") != 2.0, ranges)
    assert is_kept(~(F("x") > 1.5), ranges)
    assert not is_kept((F("x") > 5.0) | (F("x") < 1.0), ranges)
    assert not is_kept((F("x") != 2.0) & (F("n") > 10), {"b": {"n": span(1, 10), **ranges["b"]}})


def test_bounds_that_python_has_no_words_for_are_bounds_all_the_same() -> None:
    schema = pa.schema([("t", pa.timestamp("us", "UTC"))])
    late = pa.scalar(1 << 60, pa.int64()).cast(pa.timestamp("us", "UTC"))
    predicate = bind_filter([("t", "<", pa.scalar(0, pa.timestamp("us", "UTC")))], schema)
    assert predicate is not None
    ranges = {"": {"b": {"t": ColumnRange(late, late, 0, 1)}}}
    kept, _ = prune_slices([slice_of()], ranges, schema, predicate)
    assert not kept


def test_bounds_that_call_milliseconds_microseconds_are_read_as_the_values_are() -> None:
    """Releases before 1.1 wrote such files, and statistics are made of what files say."""
    schema = pa.schema([("t", pa.timestamp("ms", "UTC"))])
    said = pa.scalar(1_577_836_800_000, pa.int64()).cast(pa.timestamp("us", "UTC"))
    meant = pa.scalar(1_577_836_800_000, pa.int64()).cast(pa.timestamp("ms", "UTC"))
    ranges = {"": {"b": {"t": ColumnRange(said, said, 0, 1)}}}
    for operator, count in (("=", 1), (">", 0)):
        predicate = bind_filter([("t", operator, meant)], schema)
        assert predicate is not None
        kept, _ = prune_slices([slice_of()], ranges, schema, predicate)
        assert len(kept) == count
