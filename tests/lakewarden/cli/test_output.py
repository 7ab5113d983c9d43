"""Rows as a table and as JSON lines."""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import count, islice

import pytest

from lakewarden.cli.output import ResultTable, as_json, as_table
from lakewarden.engine.kernel.shown import PAGE_ROWS, Row, plain


def table(*rows: Row) -> list[str]:
    return list(as_table(ResultTable(tuple(rows[0]), rows)))


def test_columns_are_aligned_and_numbers_stand_to_the_right() -> None:
    assert table({"city": "Oslo", "qty": 7}, {"city": "Å", "qty": 1200}) == [
        "city  qty",
        "----  ----",
        "Oslo     7",
        "Å     1200",
    ]


def test_no_rows_are_said_to_be_none() -> None:
    assert list(as_table(ResultTable(("id",), ()))) == ["(no rows)"]


def test_nothing_is_null_and_flags_are_no_numbers() -> None:
    assert table({"flag": True, "qty": None}, {"flag": False, "qty": 2.5}) == [
        "flag   qty",
        "-----  ----",
        "true   null",
        "false   2.5",
    ]


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert table({"text": "a\x1b[2J\nb", "list": ["\x9b"]})[2] == r'a\x1b[2J\nb  ["\x9b"]'


def test_rows_beyond_a_page_are_printed_as_they_come() -> None:
    endless = ({"id": number} for number in count())
    lines = list(islice(as_table(ResultTable(("id",), endless)), PAGE_ROWS + 7))
    assert lines[-1].strip() == str(PAGE_ROWS + 4)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (1 << 63, 1 << 63),
        (0.5, 0.5),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        ("ü", "ü"),
        (b"\x00\xff", "AP8="),
        (Decimal("1.50"), "1.50"),
        (date(2024, 2, 29), "2024-02-29"),
        (time(1, 2, 3), "01:02:03"),
        (datetime(2024, 2, 29, 1, 2, 3, 4), "2024-02-29T01:02:03.000004"),
        (datetime(2024, 2, 29, tzinfo=UTC), "2024-02-29T00:00:00+00:00"),
        ([1, None, [b"a"]], [1, None, ["YQ=="]]),
        ({"x": {"y": Decimal(1)}}, {"x": {"y": "1"}}),
        ({1: "a", Decimal("0.5"): float("nan")}, {"1": "a", "0.5": "NaN"}),
    ],
    ids=str,
)
def test_every_value_is_a_json_line(value: object, expected: object) -> None:
    (line,) = as_json(ResultTable(("value",), [{"value": value}]))
    found = json.loads(line, parse_constant=pytest.fail)
    assert found == {"value": expected}
    assert plain(value) == expected


def test_json_lines_have_the_columns_of_the_answer_in_its_order() -> None:
    (line,) = as_json(ResultTable(("b", "a"), [{"a": 1, "b": 2, "c": 3}]))
    assert line == '{"b": 2, "a": 1}'
