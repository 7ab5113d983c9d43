"""SQL text as a filter of a table keeps the rows that SQL keeps, and is refused at its word."""

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.conditions.arrow_filter import arrow_filter
from lakewarden.procedures.conditions.row_filter import row_filter
from lakewarden.procedures.declaring.declaration import SqlType
from tests.procedures.rows_to_filter import COLUMNS, CONDITIONS, ROWS

_TYPES = {
    SqlType.STRING: pa.string(),
    SqlType.BIGINT: pa.int64(),
    SqlType.DOUBLE: pa.float64(),
    SqlType.BOOLEAN: pa.bool_(),
    SqlType.TIMESTAMP: pa.timestamp("us", "UTC"),
}
PLAIN = [(place, column) for place, column in enumerate(COLUMNS) if column.type in _TYPES]
TABLE = pa.table(
    {
        column.name: pa.array([row[place] for row in ROWS], _TYPES[column.type])
        for place, column in PLAIN
    }
)
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("qty", pa.int32()),
        ("price", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("place", pa.struct([("city", pa.string())])),
    ]
)
ORDERS = pa.Table.from_pylist(
    [
        {"id": "a", "qty": 1, "price": Decimal("1.50"), "day": date(2026, 1, 1)},
        {"id": "b", "qty": 5, "day": date(2026, 2, 1), "place": {"city": "Oslo"}},
        {"id": "c", "qty": None, "price": Decimal("9.00"), "place": {"city": None}},
    ],
    SCHEMA,
)


def taken(text: str) -> bool:
    try:
        arrow_filter(text, TABLE.schema)
    except InvalidRequest:
        return False
    return True


TAKEN = [text for text in CONDITIONS if taken(text)]


def test_most_conditions_on_plain_columns_are_taken() -> None:
    assert len(TAKEN) > 40


@pytest.mark.parametrize("text", TAKEN)
def test_a_filter_keeps_the_rows_that_the_row_filter_keeps(text: str) -> None:
    meets = row_filter(text, COLUMNS)
    expression, _ = arrow_filter(text, TABLE.schema)
    numbered = TABLE.append_column("row", pa.array(range(len(ROWS))))
    found = numbered.filter(expression).column("row").to_pylist()
    assert found == [number for number, row in enumerate(ROWS) if meets(row)]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("qty > 3 and id = 'b'", "b"),
        ("QTY > 3", "b"),
        ("3 < `qty`", "b"),
        ("qty = 1.5", ""),
        ("not qty > 3", "a"),
        ("not (qty in (1, 2))", "b"),
        ("qty not in (1, null)", ""),
        ("qty is null or price = 1.5", "ac"),
        ("day >= '2026-01-15'", "b"),
        ("day = date '2026-01-01'", "a"),
        ("place.city = 'Oslo'", "b"),
        ("place.city is null", "ac"),
        ("qty + 99999999999 > 99999999999", "ab"),
        ("qty / 0 is null and qty = 1", "a"),
        ("case when qty > 3 then 'much' when qty > 0 then 'few' end = 'few'", "a"),
        ("id like 'a!_' escape '!' or id ilike 'B'", "b"),
        ("null", ""),
    ],
)
def test_rows_are_kept_where_the_condition_is_true(text: str, ids: str) -> None:
    expression, _ = arrow_filter(text, SCHEMA)
    assert "".join(ORDERS.filter(expression).column("id").to_pylist()) == ids


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("qty > 3 and id = 'x'", ((("qty", ">", 3), ("id", "=", "x")),)),
        ("3 < qty or (id in ('a', 'b'))", ((("qty", ">", 3),), (("id", "in", ["a", "b"]),))),
        ("qty between 1 and 2", ((("qty", ">=", 1), ("qty", "<=", 2)),)),
        ("qty not in (1)", None),
        ("qty = 1.5", None),
        ("qty in (1, null)", None),
        ("place.city = 'Oslo'", None),
        ("id = lower('A')", None),
    ],
)
def test_plain_conditions_are_told_as_such(text: str, conditions: object) -> None:
    assert arrow_filter(text, SCHEMA)[1] == conditions


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nope = 1", r"no column 'nope' \(at character 1\)"),
        ("qtty = 1", "Did you mean 'qty'"),
        ("place.town = 'x'", "no column"),
        ("id = 3", "not a value of type string.*Quote it: '3'"),
        ("qty = 'many'", "not a value of type int32"),
        ("qty = 99999999999", "not a value of type int32"),
        ("price = 1.555", "not a value of type decimal"),
        ("qty", "not true or false"),
        ("qty and id = 'a'", "not true or false"),
        ("sleep(3) = 1", "cannot use"),
        ("qty in (select 1)", "cannot use"),
        ("cast(id as int) = 3", "cannot cast a string"),
        ("abs(id) = 1", "does not fit the table"),
        ("upper(id, id) = 'A'", "has 2 arguments"),
        ("substring(id, qty, 2) = 'A'", "3 arguments that do not fit"),
        ("substring(id, 1.5, 2) = 'A'", "whole numbers"),
        ("date_format(day, 'EEE') = 'A'", "the letters 'EEE'"),
        ("date_format(qty, 'yyyy') = 'A'", "not exactly Spark's"),
        ("id rlike '('", "does not fit the table"),
        ("id like qty", "cannot use"),
        ("qty = 1; drop table x", "2 conditions"),
        ("", "0 conditions"),
        ("(" * 5000 + "true" + ")" * 5000, "nested too deeply"),
        ("not " * 3000 + "true", "nested too deeply"),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_word(text: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words) as refused:
        arrow_filter(text, SCHEMA)
    assert refused.value.code == "bad_filter"
