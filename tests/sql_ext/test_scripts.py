"""Calls in scripts: their rows can be the answer, and their errors are handled."""

from pathlib import Path

import pytest

from tests.sql_ext.conftest import Run

pytestmark = pytest.mark.xdist_group("spark")

MISSING = "CALL show_plans(path => '/no/such')"


@pytest.fixture
def last(orders: Path) -> str:
    return f"CALL show_timeline(path => '{orders}', limit => 1)"


@pytest.mark.parametrize(
    "script",
    [
        "{last}",
        "SELECT 1; {last}",
        "IF true THEN {last}; END IF",
        "CASE 1 WHEN 1 THEN {last}; END CASE",
        "FOR one AS SELECT 1 AS x DO {last}; END FOR",
        "DECLARE n INT DEFAULT 0; REPEAT SET n = n + 1; {last}; UNTIL n > 1 END REPEAT",
        "DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN {last}; END; {missing}",
    ],
)
def test_the_last_call_is_the_answer(run: Run, last: str, script: str) -> None:
    text = script.format(last=last, missing=MISSING)
    assert run(f"BEGIN {text}; END") == run(last)


def test_a_later_query_is_the_answer(run: Run, last: str) -> None:
    assert run(f"BEGIN {last}; SELECT 'x' AS x; END") == [("x",)]


@pytest.mark.parametrize(
    "condition",
    ["SQLEXCEPTION", "LAKEWARDEN_NO_TABLE", "SQLSTATE '42000'", "NOT FOUND, SQLEXCEPTION"],
)
def test_handlers_know_errors_of_calls(run: Run, condition: str) -> None:
    handler = f"DECLARE EXIT HANDLER FOR {condition} BEGIN SELECT 'handled'; END"
    assert run(f"BEGIN {handler}; {MISSING}; END") == [("handled",)]
    assert run(f"BEGIN BEGIN {handler}; {MISSING}; END; SELECT 'after'; END") == [("after",)]


def test_what_is_known_to_a_script_can_be_an_argument(run: Run, orders: Path) -> None:
    script = "DECLARE place STRING DEFAULT '{}'; CALL show_timeline(path => place, limit => 1)"
    loop = "FOR one AS SELECT '{}' AS place DO CALL show_timeline(path => one.place); END FOR"
    for text in (script, loop):
        assert run(f"BEGIN {text.format(orders)}; END")
