"""Handing back: when the ledger of a cancelled plan has been heard of."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.plans.cancel import cancel
from lakewarden.engine.plans.hand_back import handed_back, is_handed_back
from lakewarden.engine.plans.moment import look
from lakewarden.engine.plans.service import Service
from lakewarden.engine.plans.window import heard_of
from lakewarden.engine.timeline.instant import Action
from lakewarden.engine.timeline.ledger import LEDGER_FOLDER, Ledger, entry_path, read_ledger
from lakewarden.engine.timeline.ledger_entries import Cancelled, Withdrawn
from tests.engine.plans.hooked import Hook
from tests.engine.plans.test_window import SKEW_MS, A, B, plan, window, written
from tests.incremental.toy import ToyTable

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


def heard_while(table: ToyTable, given_up: str, happening: Callable[[], object]) -> tuple[str, ...]:
    """What is handed back when something happens to a ledger right before it is read."""
    context = table.context()
    hook = Hook(1, lambda: happening(), of=("list", f"{LEDGER_FOLDER}/{given_up}"))
    watched = replace(context, storage=hook.storage(context.storage))
    return handed_back(watched, look(context), Service.COMPACTION, "0")


def test_a_ledger_that_is_removed_this_moment_hands_nothing_back_and_a_broken_one_is_told() -> None:
    table = written()
    given_up = plan(table, A)
    cancel(table.context(), given_up, "not wanted", force=True)
    assert heard_while(table, given_up, lambda: None) == ("p=a",)
    path = entry_path(given_up, 1)
    with pytest.raises(CorruptTable):
        heard_while(table, given_up, lambda: table.storage.put(path, b"{}"))
    assert heard_while(table, given_up, lambda: table.storage.delete(path)) == ()


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
