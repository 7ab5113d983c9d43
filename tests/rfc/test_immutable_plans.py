"""The RFC's rows for plans that are not cancellable, in simulated time.

X carries the plan out, and others act at one of his storage calls: while he is alive, in a pause
that is longer than he may be silent, or after his death there.
"""

from functools import partial

import pytest

from tests.rfc.plans import KINDS, Answer, Kind, Trial, calls_of, codes, completions, places

immutable = partial(Trial, cancellable=False)
# Why one who is not needed has failed: who carries it out holds it, or has the lock at the moment.
BUSY = {"plan_held", "lock_held"}
LOST = {"superseded", "lock_lost", "lock_held"}


def every_call(kind: Kind) -> tuple[int, ...]:
    return tuple(places(1, calls_of(kind, cancellable=False)[1]))


def every_call_inflight(kind: Kind) -> tuple[int, ...]:
    return tuple(places(*calls_of(kind, cancellable=False)))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_immutable_a(kind: Kind) -> None:
    """Several carry out one new plan: one attempt completes, the others fail or find it done."""
    for call in every_call(kind):
        trial, others = immutable(kind), list[Answer]()

        def others_execute(trial: Trial = trial, others: list[Answer] = others) -> None:
            others.extend(trial.executes() for _ in range(2))

        answer, _ = trial.executes_while(call, others_execute)
        others.append(trial.executes())
        assert len(completions(answer, *others)) == 1
        assert codes(answer, *others) <= BUSY
        assert trial.is_completed
        trial.assert_sound()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_immutable_b(kind: Kind) -> None:
    """Y begins after X has made it inflight: X alive keeps Y out, and completes."""
    for call in every_call_inflight(kind):
        trial, others = immutable(kind), list[Answer]()
        act = partial(lambda trial, others: others.append(trial.executes()), trial, others)
        answer, _ = trial.executes_while(call, act)
        assert len(completions(answer)) == 1
        assert completions(*others) == []
        assert codes(*others) <= BUSY
        trial.assert_sound()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_immutable_b_when_x_pauses(kind: Kind) -> None:
    """Y takes X for dead, rolls his attempt back and completes; X finds out, and removes nothing
    but his own files. Past the point of no return X has committed, and Y finds it done."""
    for call in every_call_inflight(kind):
        trial, others = immutable(kind), list[Answer]()

        def pause_and_execute(trial: Trial = trial, others: list[Answer] = others) -> None:
            trial.pauses()
            others.append(trial.executes())

        answer, _ = trial.executes_while(call, pause_and_execute)
        assert len(completions(answer, *others)) == 1
        assert codes(answer) <= LOST
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
        trial, others = immutable(kind), list[Answer]()
        trial.executes_until(died_at)
        trial.pauses()
        act = partial(lambda trial, others: others.append(trial.executes()), trial, others)
        answer, _ = trial.executes_while(call, act)
        others.append(trial.executes())
        assert len(completions(answer, *others)) == 1
        assert codes(answer, *others) <= BUSY
        trial.assert_sound()


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
