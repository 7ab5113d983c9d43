"""Conditions as people type them."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from lakewarden import InvalidRequest
from lakewarden.cli.entry import where
from lakewarden.engine.read.merge.predicate import bind_filter

SCHEMA = pa.schema(
    [
        ("qty", pa.int64()),
        ("city", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("ratio", pa.float32()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("ms", "UTC")),
        ("local", pa.timestamp("us")),
        ("octets", pa.binary()),
        ("a<b", pa.int64()),
        ("tags", pa.list_(pa.string())),
        ("two words", pa.string()),
    ]
)
NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("qty > 3", ("qty", ">", 3)),
        ("qty>=-3", ("qty", ">=", -3)),
        ("qty <> 3", ("qty", "!=", 3)),
        (" qty == 3 ", ("qty", "==", 3)),
        ("city = Oslo", ("city", "=", "Oslo")),
        ("city = 'New York'", ("city", "=", "New York")),
        ('city = "it\'s"', ("city", "=", "it's")),
        ("city = it's", ("city", "=", "it's")),
        ("city = a<=b", ("city", "=", "a<=b")),
        ("city = ", ("city", "=", "")),
        ("city = '", ("city", "=", "'")),
        ("two words = x y", ("two words", "=", "x y")),
        ("`a<b` <= 3", ("a<b", "<=", 3)),
        ("price < 1.5", ("price", "<", Decimal("1.50"))),
        ("ratio = 0.5", ("ratio", "=", 0.5)),
        ("flag = true", ("flag", "=", True)),
        ("day = 2024-02-29", ("day", "=", date(2024, 2, 29))),
        ("at = 2024-02-29 12:00:00", ("at", "=", NOON)),
        ("at = 2024-02-29T12:00:00Z", ("at", "=", NOON)),
        ("at = 2024-02-29 13:00:00+01:00", ("at", "=", NOON)),
        ("at >= 2024-02-29", ("at", ">=", NOON.replace(hour=0))),
        ("local = 2024-02-29 12:00:00", ("local", "=", NOON.replace(tzinfo=None))),
        ("octets = ab", ("octets", "=", b"ab")),
    ],
)
def test_a_condition_has_its_value_in_the_column_s_type(
    text: str, expected: tuple[str, str, object]
) -> None:
    found, meant = bind_filter(where([text], SCHEMA), SCHEMA), bind_filter([expected], SCHEMA)
    assert found is not None
    assert meant is not None
    assert found.expression.equals(meant.expression)


def test_several_conditions_must_all_hold() -> None:
    asked = where(["qty > 3 or qty < 0", "city = Oslo"], SCHEMA)
    assert asked == "(qty > 3 or qty < 0) AND (`city` = 'Oslo')"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("qty", "not true or false"),
        ("", "0 conditions"),
        ("= 3", "not valid"),
        ("nope = 3", "no column 'nope'"),
        ("city = Oslo or qty > 3", "no column 'Oslo'"),
        ("qty = many", "type int64"),
        ("qty = 99999999999999999999", "type int64"),
        ("price = 1.555", "type decimal128"),
        ("at = noon", "type timestamp"),
        ("tags = a", "type list"),
    ],
)
def test_what_is_no_condition_is_refused(text: str, part: str) -> None:
    with pytest.raises(InvalidRequest, match=part) as refused:
        where([text], SCHEMA)
    assert refused.value.code == "bad_filter"
