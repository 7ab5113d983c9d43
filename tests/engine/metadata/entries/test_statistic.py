"""Statistics: joined only where their bounds can be compared, and never made narrower."""

import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.entries.changes import ColumnSummary, NewFile, TableChange
from lakewarden.engine.metadata.entries.statistics_entries import (
    Statistic,
    column_stats_entries,
    statistic_of,
    union,
)
from lakewarden.engine.metadata.entries.value_types import ValueType, value_type
from tests.engine.metadata.java_entries import of_entries


def statistic(value: object, type_: pa.DataType) -> Statistic:
    bound = pa.scalar(value, type_)
    found = statistic_of(ColumnSummary(bound, bound, 1, int(value is None)))
    assert found is not None
    return found


def joined(*members: Statistic) -> tuple[object, object, ValueType] | None:
    whole = union(members)
    return None if whole is None else (whole.low, whole.high, whole.kind)


def test_integers_of_different_widths_meet_in_the_wider() -> None:
    members = statistic(7, pa.int32()), statistic(-(2**40), pa.int64())
    assert joined(*members) == (-(2**40), 7, ValueType(4))


def test_decimals_of_different_scales_meet_in_one_that_holds_both() -> None:
    members = (
        statistic(Decimal("1.5"), pa.decimal128(3, 1)),
        statistic(Decimal("-20.25"), pa.decimal128(4, 2)),
    )
    assert joined(*members) == (-2025, 150, ValueType(10, "4,2"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (statistic(1, pa.int64()), statistic("1", pa.string())),
        (statistic(1, pa.int64()), statistic(1.0, pa.float64())),
        (statistic(1, pa.int64()), statistic(1, pa.timestamp("us"))),
    ],
)
def test_bounds_of_unlike_types_are_not_known_together(one: Statistic, other: Statistic) -> None:
    assert joined(one, other) is None
    assert joined(other, one) is None


def test_only_nulls_of_any_type_yield_to_bounds() -> None:
    nulls = statistic(None, pa.string())
    assert joined(nulls, statistic(5, pa.int64())) == (5, 5, ValueType(4))
    assert joined(statistic(5, pa.int64()), nulls) == (5, 5, ValueType(4))


def test_a_log_of_deletes_takes_on_the_type_of_others() -> None:
    deletes = statistic_of(ColumnSummary(None, None, 0, 0))
    assert deletes is not None
    assert joined(deletes, statistic(None, pa.string())) == (None, None, ValueType(7))


@given(st.lists(st.floats(), min_size=1))
def test_nan_is_larger_than_any_number(values: list[float]) -> None:
    whole = union([statistic(value, pa.float64()) for value in values])
    assert whole is not None
    assert whole.value_count == len(values)
    has_nan = any(map(math.isnan, values))
    numbers = [value for value in values if not math.isnan(value)]
    assert isinstance(whole.high, float)
    assert math.isnan(whole.high) == has_nan
    if numbers:
        assert whole.low == min(numbers)


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9
    )
)
def test_a_decimal_is_stored_in_the_fewest_bytes(value: Decimal) -> None:
    type_ = pa.decimal128(20, 3)
    kind, found = value_type(type_), statistic(value, type_)
    assert kind is not None
    assert found.low is not None
    stored = kind.stored(found.low)
    assert isinstance(stored, bytes)
    assert kind.plain(stored) == found.low == int(value * 1000)
    assert len(stored) == 1 or int.from_bytes(stored[1:], "big", signed=True) != found.low


def told_early(bound: pa.Scalar) -> object:
    """A bound in the form from before release 1.1."""
    summary = ColumnSummary(bound, bound, 1, 0)
    change = TableChange(instant="1", new_files=(NewFile("p", "f", 1, {"c": summary}),))
    records, _ = of_entries(column_stats_entries(change, (), is_early=True))
    (record,) = records.values()
    statistics = record["ColumnStatsMetadata"][1]
    assert statistics["valueType"] is None
    return statistics["minValue"]


def test_early_tables_get_early_wrappers() -> None:
    model = "org.apache.hudi.avro.model"
    assert told_early(pa.scalar(3, pa.date32())) == (f"{model}.DateWrapper", {"value": 3})
    assert told_early(pa.scalar("x")) == (f"{model}.StringWrapper", {"value": "x"})


def test_what_is_not_known_of_early_tables_is_refused() -> None:
    with pytest.raises(InvalidRequest) as refused:
        told_early(pa.scalar(Decimal("1.5"), pa.decimal128(3, 1)))
    assert refused.value.code == "unsupported_early_statistics"
