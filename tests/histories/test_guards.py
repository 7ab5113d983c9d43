"""The net finds what a missing guard does, and makes the history that shows it short."""

import pytest

from tests.histories.guards import GUARDS, Guard
from tests.histories.history import History, play
from tests.histories.shrink import shrunk

LIVING = next(guard for guard in GUARDS if "deleted in one file group" in guard.name)
SHORT = (
    "mor/BLOOM/event_time 1:upsert:3031719022: 2:delete:3571477196: 9:insert:1528613434:"
    " 11:upsert:538337904:"
)


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_what_a_guard_names_is_there(guard: Guard) -> None:
    with guard.removed():
        assert guard.places


def test_a_history_is_red_without_a_guard_and_green_with_it() -> None:
    history = History.parse(SHORT)
    assert not play(history).failure
    with LIVING.removed():
        assert play(history).failure


def test_a_failing_history_loses_the_steps_that_do_not_matter() -> None:
    first, *rest = History.parse(SHORT).steps
    others = History.parse("mor/SIMPLE 2:settle:1: 3:savepoint:5: 4:sweep:3:").steps
    history = History(History.parse(SHORT).kind, (first, *others, *rest))
    with LIVING.removed():
        short = shrunk(play(history))
    assert str(short.history) == SHORT
