"""Handing back: when the ledger of a cancelled plan has been heard of."""

import pytest

from lakewarden.engine.plans.cancel import cancel
from lakewarden.engine.plans.hand_back import is_handed_back
from lakewarden.engine.plans.moment import look
from lakewarden.engine.plans.service import Service
from lakewarden.engine.plans.window import heard_of
from lakewarden.engine.timeline.instant import Action
from lakewarden.engine.timeline.ledger import Ledger, read_ledger
from lakewarden.engine.timeline.ledger_entries import Cancelled, Withdrawn
from tests.engine.plans.test_window import SKEW_MS, A, B, plan, window, written

AT_MS = 1_000


def cancelled(action: Action) -> Ledger:
    entry = Cancelled(instant="1", action=action, owner="o", by="b", reason="r", at_ms=AT_MS)
    return Ledger("1", (entry,))


@pytest.mark.parametrize(
    ("heard", "expected"),
    [
        ({}, True),
        ({Service.COMPACTION: None}, True),
        ({Service.CLUSTERING: AT_MS}, True),
        ({Service.COMPACTION: AT_MS}, False),
        ({Service.COMPACTION: AT_MS + 1}, True),
    ],
)
def test_a_ledger_is_needed_until_a_plan_of_its_service_has_heard_of_it(
    heard: dict[Service, int | None], *, expected: bool
) -> None:
    assert is_handed_back(cancelled(Action.COMPACTION), heard) is expected


def test_nobody_waits_for_the_ledgers_of_writes() -> None:
    assert is_handed_back(cancelled(Action.DELTA_COMMIT), dict.fromkeys(Service, 0))


def test_nothing_is_handed_back_by_what_had_completed() -> None:
    entry = Withdrawn(
        instant="1", action=Action.COMPACTION, owner="o", by="b", reason="r", at_ms=AT_MS
    )
    assert is_handed_back(Ledger("1", (entry,)), dict.fromkeys(Service, 0))


def test_a_ledger_that_is_not_needed_any_more_changes_no_window() -> None:
    table = written()
    given_up = plan(table, A)
    table.carry_out(plan(table, B))
    cancel(table.context(), given_up, "not wanted", force=True)
    context = table.context()
    assert not is_handed_back(
        read_ledger(table.storage, given_up), heard_of(context, look(context))
    )
    assert window(table).partitions == ("p=a",)
    table.clock.advance(SKEW_MS)
    table.carry_out(plan(table, A))
    assert is_handed_back(read_ledger(table.storage, given_up), heard_of(context, look(context)))
    assert window(table).partitions == ()
