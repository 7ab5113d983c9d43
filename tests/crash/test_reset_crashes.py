"""The crash matrix of resetting: the plan stays whole, whoever dies at taking its attempt back."""

from contextlib import suppress
from itertools import islice

import pytest

from lakewarden.engine.services.execution.execute import Execution
from lakewarden.engine.testing.fault_plan import FaultPlan, crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.transaction.reset import ResetOutcome, reset
from tests.engine.services.service_table import contents
from tests.rfc.plans import IS_SIMULATION, KINDS, LAZY, Kind, Trial, calls_of

# A prime, so that all kinds of deaths come up where not every one is tried.
STEP = 1 if IS_SIMULATION else 17


def abandoned(kind: Kind) -> Trial:
    """An immutable plan of one who died when he had made all of his files."""
    trial = Trial(kind, cancellable=False)
    inflight, last = calls_of(kind, cancellable=False)
    trial.executes_until(inflight + (last - inflight) // 2)
    trial.pauses()
    return trial


def resets(trial: Trial, stage: FaultyStorage) -> ResetOutcome:
    return reset(trial.world.context(90, stage, **LAZY), trial.plan).outcome


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_plan_whose_attempt_is_taken_back_can_be_carried_out(kind: Kind) -> None:
    trial = abandoned(kind)
    stage = FaultyStorage(trial.world.storage, FaultPlan(), trial.world.clock)
    assert resets(trial, stage) is ResetOutcome.REQUESTED_AGAIN
    for plan in islice(crash_plans(stage.calls), 0, None, STEP):
        trial, death = abandoned(kind), f"replay with plan {str(plan)!r}"
        with suppress(Crashed):
            resets(trial, FaultyStorage(trial.world.storage, plan, trial.world.clock))
        assert trial.world.rows() == contents(kind.shape, *kind.history), death
        trial.pauses()
        assert isinstance(trial.executes(), Execution), death
        assert trial.is_completed, death
        trial.assert_sound()
