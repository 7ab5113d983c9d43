"""The RFC's rows for plans that are cancellable (it calls them mutable), in simulated time.

X carries the plan out, and others act at one of his storage calls: while he is alive, in a pause
that is longer than he may be silent, or after his death there.
"""

from functools import partial

import pytest

from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.services.execution.execute import Execution
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.instants.state import LedgerEnd
from tests.rfc.plans import BUSY, KINDS, Kind, Trial, calls_of, codes, completions, places

mutable = partial(Trial, cancellable=True)
# Nobody carries out what was started before, or what was taken off the timeline.
TOO_LATE = {"plan_not_executable", "plan_cancelled", "unknown_plan"}
LOST = {"cancelled", "superseded", "rolled_back_elsewhere", "lock_held", "lock_lost"}


def every_call(kind: Kind) -> tuple[int, ...]:
    return tuple(places(1, calls_of(kind, cancellable=True)[1]))


def every_call_inflight(kind: Kind) -> tuple[int, ...]:
    return tuple(places(*calls_of(kind, cancellable=True)))


def assert_gone(trial: Trial) -> None:
    """The plan is off the timeline for good, and its partitions are returned."""
    assert trial.instant is None
    assert trial.end() is LedgerEnd.CANCELLED


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_mutable_a(kind: Kind) -> None:
    """Several carry out one new plan: one attempt completes, the others fail or find it done."""
    for call in every_call(kind):
        mutable(kind).assert_one_of_three_completes(call)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_mutable_b(kind: Kind) -> None:
    """Y begins after X has made it inflight: X completes; Y fails, or finds it done."""
    for call in every_call_inflight(kind):
        trial = mutable(kind)
        x, others = trial.executes_while(call, trial.executes)
        assert len(completions(x)) == 1
        assert completions(*others) == []
        assert codes(*others) <= BUSY
        trial.assert_sound()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_mutable_b_when_x_pauses(kind: Kind) -> None:
    """Y takes X for dead and fails all the same; X goes on, unless the lock was taken from him."""
    for call in every_call_inflight(kind):
        trial = mutable(kind)
        x, others = trial.executes_while(call, trial.pauses, trial.executes)
        assert completions(*others) == []
        assert codes(*others) <= BUSY | TOO_LATE
        assert len(completions(x)) == 1 or codes(x) <= LOST
        trial.assert_sound()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_mutable_b_when_x_fails(kind: Kind) -> None:
    """X dies: Y fails, at once and later, unless X had committed."""
    for call in every_call_inflight(kind):
        trial = mutable(kind)
        trial.executes_until(call)
        has_committed = trial.end() is LedgerEnd.COMMITTED
        answers = [trial.executes()]
        trial.pauses()
        answers.append(trial.executes())
        assert completions(*answers) == []
        assert has_committed == trial.is_completed
        if not has_committed:
            assert codes(*answers) <= BUSY | TOO_LATE
            assert isinstance(answers[1], LakewardenError)
        trial.assert_sound()
        if not has_committed:
            assert_gone(trial)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_mutable_c(kind: Kind) -> None:
    """It is inflight already, by one who died: whoever begins with it fails."""
    for died_at in every_call_inflight(kind):
        trial = mutable(kind)
        trial.executes_until(died_at)
        if trial.end() is LedgerEnd.COMMITTED:
            continue
        trial.pauses()
        answers = [trial.executes(), trial.executes()]
        assert codes(*answers) <= TOO_LATE
        assert not any(isinstance(answer, Execution) for answer in answers)
        trial.assert_sound()
        assert_gone(trial)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_mutable_d(kind: Kind) -> None:
    """Y cleans while X carries it out, or is about to: Y leaves it alone, and X completes."""
    for call in every_call(kind):
        trial = mutable(kind)
        x, _ = trial.executes_while(call, trial.cleans)
        assert len(completions(x)) == 1
        assert trial.is_completed
        trial.assert_sound()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_mutable_d_when_x_pauses(kind: Kind) -> None:
    """X is silent for too long: Y may roll back what he made inflight, and then X fails."""
    for call in every_call(kind):
        trial = mutable(kind)
        x, _ = trial.executes_while(call, trial.pauses, trial.cleans)
        assert (len(completions(x)) == 1) == trial.is_completed
        assert codes(x) <= LOST | TOO_LATE
        trial.assert_sound()
        if not trial.is_completed:
            assert_gone(trial)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_mutable_d_when_the_plan_is_old(kind: Kind) -> None:
    """A live X keeps his plan however old it is; before he has claimed it, Y may roll it back."""
    for call in every_call(kind):
        trial = mutable(kind)
        trial.grows_old()
        x, ends = trial.executes_while(call, trial.end, trial.cleans)
        if completions(x):
            assert trial.is_completed
        else:
            # Only what nobody had claimed may have been rolled back under X's eyes.
            assert ends[0] is LedgerEnd.NONE
            assert codes(x) <= TOO_LATE | BUSY | LOST
            assert_gone(trial)
        trial.assert_sound()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_mutable_e_when_the_plan_is_young(kind: Kind) -> None:
    """X cleans, and whenever Y begins with the plan, it is still there for him."""
    last = _calls_of_a_clean(kind)
    for call in places(1, last):
        trial = mutable(kind)
        others = [*trial.cleans_while(call, trial.executes), trial.executes()]
        assert len(completions(*others)) == 1
        assert codes(*others) <= {"lock_held"}
        trial.assert_sound()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_mutable_e_when_the_plan_is_old(kind: Kind) -> None:
    """X cleans and rolls it back: Y fails, unless he was there before X had a rollback planned."""
    last = _calls_of_a_clean(kind, is_old=True)
    outcomes = set()
    for call in places(1, last):
        trial = mutable(kind)
        trial.grows_old()
        others = [*trial.cleans_while(call, trial.executes), trial.executes()]
        assert codes(*others) <= TOO_LATE | {"lock_held"}
        assert (len(completions(*others)) == 1) == trial.is_completed
        trial.assert_sound()
        outcomes.add(trial.is_completed)
        if not trial.is_completed:
            assert_gone(trial)
    assert outcomes == {True, False}


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_mutable_e_when_x_fails(kind: Kind) -> None:
    """X dies while he cleans: Y may carry it out only if X had not cancelled it yet."""
    outcomes = set()
    for call in places(1, _calls_of_a_clean(kind, is_old=True)):
        trial = mutable(kind)
        trial.grows_old()
        fault = Fault(call, FaultKind.FAIL_AFTER, is_fatal=True)
        trial.cleans(FaultyStorage(trial.world.storage, FaultPlan((fault,)), trial.world.clock))
        end = trial.end()
        trial.pauses()
        answer = trial.executes()
        assert (end is LedgerEnd.NONE) == (len(completions(answer)) == 1) == trial.is_completed
        assert codes(answer) <= TOO_LATE
        trial.assert_sound()
        outcomes.add(trial.is_completed)
        if not trial.is_completed:
            assert_gone(trial)
    assert outcomes == {True, False}


def _calls_of_a_clean(kind: Kind, *, is_old: bool = False) -> int:
    trial = mutable(kind)
    if is_old:
        trial.grows_old()
    stage = FaultyStorage(trial.world.storage, FaultPlan(), trial.world.clock)
    assert trial.cleans(stage) is None
    return len(stage.calls)
