"""The RFC's rows for plans that are not cancellable, in simulated time.

X carries the plan out, and others act at one of his storage calls: while he is alive, in a pause
that is longer than he may be silent, or after his death there.
"""

from functools import partial

import pytest

from tests.rfc.plans import BUSY, KINDS, Kind, Trial, calls_of, codes, completions, places

immutable = partial(Trial, cancellable=False)
LOST = {"superseded", "lock_lost", "lock_held"}


def every_call(kind: Kind) -> tuple[int, ...]:
    return tuple(places(1, calls_of(kind, cancellable=False)[1]))


def every_call_inflight(kind: Kind) -> tuple[int, ...]:
    return tuple(places(*calls_of(kind, cancellable=False)))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_immutable_a(kind: Kind) -> None:
    """Several carry out one new plan: one attempt completes, the others fail or find it done."""
    for call in every_call(kind):
        immutable(kind).assert_one_of_three_completes(call)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_immutable_b(kind: Kind) -> None:
    """Y begins after X has made it inflight: X alive keeps Y out, and completes."""
    for call in every_call_inflight(kind):
        trial = immutable(kind)
        x, others = trial.executes_while(call, trial.executes)
        assert len(completions(x)) == 1
        assert completions(*others) == []
        assert codes(*others) <= BUSY
        trial.assert_sound()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_immutable_b_when_x_pauses(kind: Kind) -> None:
    """Y takes X for dead, rolls his attempt back and completes; X finds out, and removes nothing
    but his own files. Past the point of no return X has committed, and Y finds it done."""
    for call in every_call_inflight(kind):
        trial = immutable(kind)
        x, others = trial.executes_while(call, trial.pauses, trial.executes)
        assert len(completions(x, *others)) == 1
        assert codes(x) <= LOST
        assert codes(*others) <= BUSY
        trial.assert_sound()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_immutable_b_when_x_dies(kind: Kind) -> None:
    """Whatever X has left, Y rolls it back and completes, or publishes what X had committed."""
    for call in every_call_inflight(kind):
        trial = immutable(kind)
        trial.executes_until(call)
        assert codes(trial.executes()) <= BUSY
        trial.pauses()
        answer = trial.executes()
        assert codes(answer) == set()
        assert trial.is_completed
        trial.assert_sound()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_immutable_c(kind: Kind) -> None:
    """It is inflight already, by one who died, and X and Y begin with it: one of them completes."""
    died_at = calls_of(kind, cancellable=False)[0] + 8
    for call in every_call(kind):
        trial = immutable(kind)
        trial.executes_until(died_at)
        trial.pauses()
        trial.assert_one_of_three_completes(call)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_immutable_c_when_x_fails_in_between(kind: Kind) -> None:
    """X dies as well, before or after he has rolled back the first attempt: Y completes."""
    first, last = calls_of(kind, cancellable=False)
    for call in places(1, last):
        trial = immutable(kind)
        trial.executes_until(first + 8)
        trial.pauses()
        trial.executes_until(call)
        trial.pauses()
        assert codes(trial.executes()) == set()
        assert trial.is_completed
        trial.assert_sound()
