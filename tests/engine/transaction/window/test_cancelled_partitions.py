"""Handing back: when the ledger of a cancelled plan has been heard of."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.ledger.entries import Cancelled, Withdrawn
from lakewarden.engine.timeline.ledger.ledger import LEDGER_FOLDER, Ledger, entry_path, read_ledger
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.state.context import Service, load_for_writing
from lakewarden.engine.transaction.window.window import cancelled_partitions, heard_of, is_returned
from tests.engine.transaction.hooked import Hook
from tests.engine.transaction.window_cases import SKEW_MS, A, B, plan, window, written
from tests.incremental.planning_table import ToyTable

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
    assert is_returned(cancelled(Action.COMPACTION), heard) is expected


def test_nobody_waits_for_the_ledgers_of_writes() -> None:
    assert is_returned(cancelled(Action.DELTA_COMMIT), dict.fromkeys(Service, 0))


def test_nothing_is_handed_back_by_what_had_completed() -> None:
    entry = Withdrawn(
        instant="1", action=Action.COMPACTION, owner="o", by="b", reason="r", at_ms=AT_MS
    )
    assert is_returned(Ledger("1", (entry,)), dict.fromkeys(Service, 0))


def heard_while(table: ToyTable, given_up: str, happening: Callable[[], object]) -> tuple[str, ...]:
    """What is returned when something happens to a ledger right before it is read."""
    context = table.context()
    hook = Hook(1, lambda: happening(), of=("list", f"{LEDGER_FOLDER}/{given_up}"))
    watched = replace(context, storage=hook.storage(context.storage))
    return cancelled_partitions(watched, load_for_writing(context), Service.COMPACTION, "0")


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
    assert not is_returned(
        read_ledger(table.storage, given_up), heard_of(context, load_for_writing(context))
    )
    assert window(table).partitions == ("p=a",)
    table.clock.advance(SKEW_MS)
    table.carry_out(plan(table, A))
    assert is_returned(
        read_ledger(table.storage, given_up), heard_of(context, load_for_writing(context))
    )
    assert window(table).partitions == ()
