"""Cancelling at any moment of an execution: once acknowledged, nothing of the plan ever commits.

What decides is drawn from a seed: the service, the storage call of the executor at which somebody
else cancels the plan, whether he has to wait for the lock, and whether the executor pauses there.
"""

from random import Random

import pytest

from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.services.execution.execute import Execution
from lakewarden.engine.timeline.ledger.entries import Cancelled
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.cancel.cancel import Cancellation, Cleanup, Ending
from tests.rfc.plans import IS_SIMULATION, KINDS, Answer, Kind, Trial, calls_of, codes

SEEDS = 1000 if IS_SIMULATION else 30
# A batch for each test, so that many processes share the work.
BATCHES = 5
CANCELLED = {"cancelled", "plan_cancelled", "unknown_plan", "rolled_back_elsewhere"}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_an_acknowledged_cancel_never_commits(batch: int) -> None:
    outcomes = set()
    for seed in range(batch, SEEDS, BATCHES):
        chance = Random(seed)
        kind, cancellable = chance.choice(KINDS), chance.random() < 0.7
        call = chance.randint(1, calls_of(kind, cancellable=cancellable)[1])
        outcomes.add(_cancelled_at(kind, call, chance, cancellable=cancellable))
    assert Ending.CANCELLED in outcomes


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_cancelled_at_each_storage_call_nothing_of_the_plan_stays(kind: Kind) -> None:
    last = calls_of(kind, cancellable=True)[1]
    calls = [*range(1, last, 1 if IS_SIMULATION else 10), last]
    outcomes = {_cancelled_at(kind, one, Random(one), cancellable=True) for one in calls}
    assert outcomes >= {Ending.CANCELLED, Ending.ALREADY_COMMITTED}


def _cancelled_at(kind: Kind, call: int, chance: Random, *, cancellable: bool) -> Ending | None:
    trial = Trial(kind, cancellable=cancellable)
    without_lock, pauses = chance.random() < 0.6, chance.random() < 0.3

    def cancel() -> Cancellation | LakewardenError:
        if pauses:
            trial.pauses()
        return trial.cancels(without_lock=without_lock)

    executed, (answer,) = trial.executes_while(call, cancel)
    where = f"{kind} cancelled at call {call}: {answer}, then {executed}"
    if isinstance(answer, Cancellation) and answer.outcome is Ending.CANCELLED:
        _assert_nothing_of_it(trial, answer, executed, where)
        return answer.outcome
    assert trial.is_completed, where
    assert isinstance(executed, Execution), where
    trial.assert_sound()
    return answer.outcome if isinstance(answer, Cancellation) else None


def _assert_nothing_of_it(trial: Trial, answer: Cancellation, executed: Answer, where: str) -> None:
    assert not isinstance(executed, Execution), where
    assert codes(executed) <= CANCELLED, where
    assert not trial.is_completed, where
    end = read_ledger(trial.world.storage, trial.plan).last_whole
    assert isinstance(end, Cancelled), where
    assert end.partitions == answer.handed_back == ("",), where
    # The attempt has stopped by itself, and what was left to it is gone.
    again = trial.cancels()
    assert isinstance(again, Cancellation), where
    assert (again.outcome, again.cleanup) == (Ending.ALREADY_CANCELLED, Cleanup.DONE), where
    assert trial.instant is None, where
    trial.assert_sound()
