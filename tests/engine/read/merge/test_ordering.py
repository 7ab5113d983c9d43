"""Ordering values compare as Java compares them."""

import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.merge.entries import OrderingValues, ordering_values


def values(*columns: pa.Array) -> OrderingValues:
    return ordering_values(columns, len(columns[0]))


def assert_ascending(*columns: pa.Array) -> None:
    """Each record is smaller than the next, by ranks and by comparison."""
    ordering = values(*columns)
    places = range(ordering.length)
    assert ordering.ranks().tolist() == list(places)
    for place in places[1:]:
        smaller, larger = ordering.take([place - 1]), ordering.take([place])
        assert larger.are_at_least(smaller).tolist() == [True]
        assert smaller.are_at_least(larger).tolist() == [False]
        assert smaller.are_at_least(smaller).tolist() == [True]


def test_numbers_compare_by_value_across_the_whole_range():
    assert_ascending(pa.array([-(2**63), -1, 0, 1, 2**63 - 1]))


def test_nan_is_larger_than_infinity_and_zero_has_a_sign():
    numbers = [-math.inf, -1.5, -0.0, 0.0, 1e-300, 1.5, math.inf, math.nan]
    assert_ascending(pa.array(numbers))


def test_all_nan_are_equal():
    ordering = values(pa.array([math.nan, -math.nan]))
    assert ordering.ranks().tolist() == [0, 0]


def test_text_compares_by_its_bytes():
    assert_ascending(pa.array(["", "B", "a", "aa", "é", "\ue000", "\U0001f600"]))


def test_bytes_are_unsigned():
    assert_ascending(pa.array([b"", b"\x00", b"\x7f", b"\x80", b"\xff"]))


def test_decimals_compare_beyond_64_bits():
    numbers = [-(10**30), -(2**64), -1, 0, 1, 2**63, 2**64, 10**37]
    assert_ascending(pa.array([Decimal(number) for number in numbers], pa.decimal128(38)))


def test_decimals_of_a_slice_are_its_own():
    column = pa.array([Decimal(number) for number in (5, 1, 2, 9)], pa.decimal128(10, 2))
    assert_ascending(column.slice(1))


@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.date64(), pa.time32("ms"), pa.time64("us"), pa.timestamp("ms")]
)
def test_dates_and_times_compare_as_numbers(kind: pa.DataType):
    day = 86_400_000
    numbers = [0, day, 2 * day] if pa.types.is_date64(kind) else [0, 1, 2]
    stored = pa.int32() if kind.bit_width == 32 else pa.int64()
    assert_ascending(pa.array(numbers, stored).cast(kind))


def test_false_is_smaller_than_true():
    assert_ascending(pa.array([False, True]))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([None, 0]),
        pa.array([None, 0.0]),
        pa.array([None, ""]),
        pa.array([None, b""]),
        pa.array([None, False]),
        pa.array([None, Decimal(0)], pa.decimal128(5, 2)),
        pa.array([None, 0], pa.int32()).cast(pa.date32()),
    ],
)
def test_a_missing_value_counts_as_the_zero_of_its_type(column: pa.Array):
    ordering = values(column)
    assert ordering.ranks().tolist() == [0, 0]


def test_several_fields_compare_from_left_to_right():
    assert_ascending(pa.array([1, 1, 2]), pa.array(["b", "c", "a"]))


def test_without_fields_all_records_are_equal():
    ordering = ordering_values([], 3)
    assert ordering.ranks().tolist() == [0, 0, 0]
    assert ordering.are_at_least(ordering).tolist() == [True] * 3


def test_a_narrow_and_a_wide_type_compare():
    narrow, wide = values(pa.array([1, 5], pa.int32())), values(pa.array([2**40, 5]))
    assert wide.are_at_least(narrow).tolist() == [True, True]
    assert narrow.are_at_least(wide).tolist() == [False, True]


def test_a_dictionary_compares_by_its_values():
    assert_ascending(pa.array(["b", "a"]).dictionary_encode().take([1, 0]))


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.decimal256(50, 0)])
def test_other_types_are_refused(kind: pa.DataType):
    with pytest.raises(InvalidRequest) as caught:
        values(pa.nulls(1, kind))
    assert caught.value.code == "unsupported_ordering_type"


@given(st.lists(st.tuples(st.integers(-3, 3), st.text(max_size=2)), min_size=1))
def test_ranks_agree_with_sorting(pairs: list[tuple[int, str]]):
    ranks = values(pa.array([n for n, _ in pairs]), pa.array([text for _, text in pairs])).ranks()
    ordered = sorted({(number, text.encode()) for number, text in pairs})
    assert ranks.tolist() == [ordered.index((number, text.encode())) for number, text in pairs]
