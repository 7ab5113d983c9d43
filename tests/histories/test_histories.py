"""Histories: whatever the calls and their order, a table has the rows of a plain dict.

`make test` plays a sample that is drawn from the date, so that each day sees others; its seed is
printed. LAKEWARDEN_HISTORIES says how many, LAKEWARDEN_SEED which one.
"""

import os
from datetime import UTC, datetime

import pytest

from tests.histories.campaign import campaign, reported
from tests.histories.history import History

HISTORIES = int(os.environ.get("LAKEWARDEN_HISTORIES", "12"))
PER_TEST = 4
FIRST = int(os.environ.get("LAKEWARDEN_SEED", f"{datetime.now(UTC):%Y%m%d}000"))
# What is skipped until it holds: by operation, or by check.
SKIPPED: frozenset[str] = frozenset(
    filter(None, os.environ.get("LAKEWARDEN_WITHOUT", "").split(","))
)


@pytest.mark.parametrize("first", range(FIRST, FIRST + HISTORIES, PER_TEST))
def test_a_table_has_the_rows_of_its_history(first: int) -> None:
    print(f"LAKEWARDEN_SEED={first}")
    for part in campaign(range(first, first + PER_TEST), without=SKIPPED):
        for seed, played in part.failed:
            pytest.fail(reported(played, seed))


def test_a_history_is_replayed_by_its_text() -> None:
    history = History.drawn(7)
    again = History.parse(str(history))
    assert (again.kind, again.steps) == (history.kind, history.steps)
