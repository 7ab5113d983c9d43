"""The checks of `accounts`: what explains a row, and that every kind of wrong row is found."""

from dataclasses import replace

import pytest

from tests.races.accounts import ACCOUNTS, FIRST_BALANCE, findings, opening_rows, row
from tests.races.journals import Answer, Operation, Row

FIRST = Operation("a1", "put", {"k": row("k", "a1")}, began=1, ended=2, answer=Answer.DONE)
SECOND = Operation("a2", "put", {"k": row("k", "a2")}, began=3, ended=4, answer=Answer.DONE)
GONE = Operation("b1", "drop", {"k": None}, began=3, ended=4, answer=Answer.DONE)


def found(rows: list[Row], *operations: Operation, at: float = 5) -> list[str]:
    return findings([*opening_rows(), *rows], operations, at, at)


def test_the_last_acknowledged_operation_explains_a_row() -> None:
    assert found([row("k", "a2")], FIRST, SECOND) == []
    assert found([], FIRST, GONE) == []


@pytest.mark.parametrize("rows", [[], [row("k", "a1")], [row("k", "b9")]], ids=str)
def test_a_lost_a_stale_and_an_invented_row_are_found(rows: list[Row]) -> None:
    (finding,) = found(rows, FIRST, SECOND)
    assert finding.startswith("k is ")


def test_a_key_that_is_there_twice_is_found() -> None:
    assert found([row("k", "a1"), row("k", "a1")], FIRST) == ["k is there 2 times"]


def test_an_operation_without_an_answer_may_be_there_or_not() -> None:
    lost = replace(SECOND, answer=Answer.LOST)
    assert found([row("k", "a1")], FIRST, lost) == []
    assert found([row("k", "a2")], FIRST, lost) == []


def test_a_refused_operation_must_not_be_there() -> None:
    assert found([row("k", "a2")], FIRST, replace(SECOND, answer=Answer.REFUSED))


def test_operations_at_one_time_may_come_in_any_order() -> None:
    assert found([row("k", "a2")], SECOND, GONE) == []
    assert found([], SECOND, GONE) == []
    # When the read began one of them had not answered yet.
    assert found([row("k", "a1")], FIRST, SECOND, at=3.5) == []


def test_a_row_from_before_its_operation_began_is_found() -> None:
    assert found([row("k", "a1")], FIRST, at=0.5)


def test_balances_are_what_receipts_say() -> None:
    receipt = row("receipt a1", "a1", 7, ACCOUNTS[0], ACCOUNTS[1])
    transfer = Operation("a1", "transfer", {"receipt a1": receipt}, 1, 2, Answer.DONE)
    after = opening_rows()
    after[0]["amount"], after[1]["amount"] = FIRST_BALANCE - 7, FIRST_BALANCE + 7
    assert findings([*after, receipt], [transfer], 5, 5) == []
    assert len(findings([*opening_rows(), receipt], [transfer], 5, 5)) == 2
    half = [{**after[0]}, *opening_rows()[1:], receipt]
    assert len(findings(half, [transfer], 5, 5)) == 1
