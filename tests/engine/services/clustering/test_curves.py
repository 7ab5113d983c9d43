"""Curves: rows that are near on them are near in all columns."""

from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.services.clustering.order import RowOrder, curve_positions, sortable
from lakewarden.engine.services.clustering.settings import LayoutStrategy

SIDE = 16
# All points of a square, in any order.
POINTS = np.random.default_rng(3).permutation(SIDE * SIDE)
COLUMNS = [pa.array(POINTS // SIDE), pa.array(POINTS % SIDE)]


def steps(layout: LayoutStrategy) -> list[int]:
    """How far apart neighbours on the curve are, column by column added up."""
    order = np.argsort(curve_positions(COLUMNS, layout, 1000))
    points = np.stack([np.asarray(column)[order] for column in COLUMNS])
    return np.abs(np.diff(points, axis=1)).sum(axis=0).tolist()


def test_a_hilbert_curve_never_jumps() -> None:
    assert set(steps(LayoutStrategy.HILBERT)) == {1}


def test_a_z_order_visits_squares_one_after_the_other() -> None:
    order = np.argsort(curve_positions(COLUMNS, LayoutStrategy.ZORDER, 1000))
    first = {(x, y) for x, y in zip(*(np.asarray(c)[order[:64]] for c in COLUMNS), strict=True)}
    assert first == {(x, y) for x in range(8) for y in range(8)}


@pytest.mark.parametrize("layout", [LayoutStrategy.ZORDER, LayoutStrategy.HILBERT])
@pytest.mark.parametrize("count", [2, 3, 5, 9, 16])
def test_files_cover_narrow_ranges_of_every_column(layout: LayoutStrategy, count: int) -> None:
    random = np.random.default_rng(5)
    columns = [pa.array(random.integers(0, 1 << 40, 4096)) for _ in range(count)]
    order = np.argsort(curve_positions(columns, layout, 4096))
    spans = [
        np.ptp(np.asarray(column)[part]) / (1 << 40)
        for column in columns[:2]
        for part in np.array_split(order, 64)
    ]
    assert np.mean(spans) < 0.75


def test_skewed_values_are_divided_as_well_as_even_ones() -> None:
    even = np.arange(1024)
    skewed = pa.array((2.0**40) ** (even / 1024))
    columns = [pa.array(np.random.default_rng(1).permutation(1024)), skewed]
    plain = [columns[0], pa.array(even)]
    found, expected = (
        curve_positions(one, LayoutStrategy.ZORDER, 1024) for one in (columns, plain)
    )
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "values",
    [
        pa.array([-5, -1, 0, 3, 9]),
        pa.array([0, 1, 1 << 31], pa.uint32()),
        pa.array([-np.inf, -1.5, 0.0, 2.5, np.inf]),
        pa.array(["", "a", "aa", "b", "ä"]),
        pa.array(["order-0001", "order-0002", "order-0010"]),
        pa.array([b"\x00", b"\x01", b"\xff"]),
        pa.array([False, True]),
        pa.array([date(1969, 1, 1), date(1970, 1, 1), date(2030, 1, 1)]),
        pa.array([-1, 0, 5], pa.timestamp("us", "UTC")),
        pa.array([Decimal("-1.5"), Decimal("0.1"), Decimal("7.0")]),
    ],
    ids=lambda values: str(values.type),
)
def test_numbers_are_ordered_as_the_values_are(values: pa.Array) -> None:
    numbers = sortable(values).tolist()
    assert numbers == sorted(numbers)
    assert len(set(numbers)) == len(values)


@given(st.lists(st.one_of(st.none(), st.floats(allow_nan=False), st.just(float("nan")))))
def test_floats_of_any_kind_keep_their_order(values: list[float | None]) -> None:
    column = pa.array(values, pa.float64())
    known = [value for value in values if value is not None and value == value]
    numbers = dict(zip(known, sortable(pa.array(known, pa.float64())).tolist(), strict=True))
    assert sorted(known, key=lambda value: numbers[value]) == sorted(known)
    assert len(sortable(column)) == len(values)


def test_rows_without_a_value_come_first() -> None:
    rows = pa.table({"a": [3, None, 1, None, 1], "b": [1, 2, 3, 1, 2]})
    assert RowOrder(("a", "b")).places(rows).tolist() == [3, 1, 4, 2, 0]


def test_equal_rows_keep_their_order() -> None:
    rows = pa.table({"a": [1, 0] * 50, "b": [0] * 100})
    for layout in LayoutStrategy:
        places = RowOrder(("a", "b"), layout, 100).places(rows).tolist()
        assert places == [*range(1, 100, 2), *range(0, 100, 2)]


def test_columns_without_order_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="list"):
        curve_positions([pa.array([[1], [2]]), pa.array([1, 2])], LayoutStrategy.ZORDER, 10)
    with pytest.raises(InvalidRequest, match="17 columns"):
        curve_positions([pa.array([1])] * 17, LayoutStrategy.ZORDER, 10)
