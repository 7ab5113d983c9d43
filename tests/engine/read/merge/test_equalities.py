"""Equalities: what a filter says of columns is found, and what it does not say is never assumed."""

from itertools import product

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.read.merge.predicate import equalities

A, B = pc.field("a"), pc.field("b")
ANYTHING: list[dict[str, list[object]]] = [{}]


def shown(expression: pc.Expression) -> list[dict[str, list[object]]]:
    return [
        {name: values.to_pylist() for name, values in one.items()} for one in equalities(expression)
    ]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (A == 1, [{"a": [1]}]),
        (pc.equal(pc.scalar(1), A), [{"a": [1]}]),
        (A.isin([1, 2]), [{"a": [1, 2]}]),
        ((A == 1) & (B > 3), [{"a": [1]}]),
        ((A == 1) | (B == 3), [{"a": [1]}, {"b": [3]}]),
        ((A == 1) | (B > 3), [{"a": [1]}, {}]),
        (((A == 1) | (A == 2)) & (B == 3), [{"a": [1], "b": [3]}, {"a": [2], "b": [3]}]),
        (A.isin([1, 2]) & (A == 2), [{"a": [2]}]),
        (pq.filters_to_expression([("a", "in", [1]), ("b", "=", 3)]), [{"a": [1], "b": [3]}]),
        (pc.field("s") == "field_ref: 'a'\ncall: 'x'", [{"s": ["field_ref: 'a'\ncall: 'x'"]}]),
    ],
)
def test_values_that_a_filter_holds_a_column_to_are_found(
    expression: pc.Expression, expected: list[dict[str, list[object]]]
) -> None:
    assert shown(expression) == expected


@pytest.mark.parametrize(
    "expression",
    [
        ~(A == 1),
        pc.equal(A == 1, pc.scalar(True)),
        A != 1,
        pc.equal(A.cast("string"), "1"),
        A == B,
        pc.field("a", "inner") == 1,
        pc.if_else(A == 1, B == 1, False),
        pc.scalar(True),
        pc.field("it's") == 1,
        pc.field("a'\nfield_ref: 'b") == 1,
    ],
)
def test_what_is_not_understood_can_be_any_row(expression: pc.Expression) -> None:
    assert shown(expression) == ANYTHING


def test_a_filter_of_very_many_parts_can_be_any_row() -> None:
    expression = A == 0
    for number in range(5_000):
        expression = expression | (number == A)
    assert shown(expression) == ANYTHING


_CONDITIONS = st.recursive(
    st.sampled_from([A == 1, B == 2, A.isin([1, 3]), B.isin([2, 4]), A > 1, B.is_null()]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] & pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
        inner.map(lambda one: ~one),
    ),
    max_leaves=12,
)


@given(_CONDITIONS)
def test_each_row_that_a_filter_keeps_is_as_an_alternative_says(expression: pc.Expression) -> None:
    values = [None, 1, 2, 3, 4]
    rows = pa.Table.from_pylist([{"a": a, "b": b} for a, b in product(values, values)])
    found = shown(expression)
    for row in rows.filter(expression).to_pylist():
        assert any(all(row[name] in some for name, some in one.items()) for one in found)
