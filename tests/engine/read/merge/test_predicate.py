"""Filters as callers write them, and what is wrong with some."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.merge.predicate import bind_filter, check_columns

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("city", pa.string())])
ROWS = pa.table({"id": ["a", "b", "c"], "n": [1, 2, 3], "city": ["x", "y", None]}, schema=SCHEMA)


@pytest.mark.parametrize(
    ("filter_", "columns", "ids"),
    [
        ([("n", ">", 1)], ("n",), ["b", "c"]),
        ([("n", ">", 1), ("city", "=", "y")], ("n", "city"), ["b"]),
        ([[("n", "=", 1)], [("city", "=", "y")]], ("n", "city"), ["a", "b"]),
        ([("id", "in", ["a", "c"])], ("id",), ["a", "c"]),
        ([["n", ">", 1]], ("n",), ["b", "c"]),
        ("n > 1 and city = 'y'", ("n", "city"), ["b"]),
        ("lower(city) = 'x' or n = 3", ("n", "city"), ["a", "c"]),
        ((pc.field("n") * 2 == 4) | pc.field("city").is_null(), ("n", "city"), ["b", "c"]),
    ],
)
def test_filter_and_the_columns_it_needs(
    filter_: object, columns: tuple[str, ...], ids: list[str]
) -> None:
    predicate = bind_filter(filter_, SCHEMA)  # type: ignore[arg-type]
    assert predicate is not None
    assert predicate.columns == columns
    assert predicate.apply(ROWS).column("id").to_pylist() == ids


def test_no_filter() -> None:
    assert bind_filter(None, SCHEMA) is None
    assert bind_filter([], SCHEMA) is None


@pytest.mark.parametrize(
    "filter_",
    [
        [("nope", "=", 1)],
        [("n", "=", "text")],
        [("n", "~", 1)],
        [("n", 1)],
        [("n", "=", 1 << 70)],
        "n > 'many'",
        "",
        7,
        pc.field("nope") == 1,
        pc.field("n") + 1,
    ],
)
def test_a_filter_that_does_not_fit_is_refused(filter_: object) -> None:
    with pytest.raises(InvalidRequest) as refused:
        bind_filter(filter_, SCHEMA)  # type: ignore[arg-type]
    assert refused.value.code == "bad_filter"


def test_conditions_are_kept_for_engines_that_know_no_arrow_expressions() -> None:
    given = bind_filter([("n", ">", 1)], SCHEMA)
    assert given is not None
    assert given.conditions == ((("n", ">", 1),),)
    expression = bind_filter(pc.field("n") > 1, SCHEMA)
    assert expression is not None
    assert expression.conditions is None


def test_unknown_column_names_the_nearest() -> None:
    with pytest.raises(InvalidRequest, match="'city'"):
        check_columns(["citi"], SCHEMA)


def test_columns_in_the_order_asked_for() -> None:
    assert check_columns(["n", "id"], SCHEMA) == ("n", "id")
    assert check_columns(None, SCHEMA) == ("id", "n", "city")
