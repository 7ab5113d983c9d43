"""The crash matrix of cancelling: whoever dies at it leaves a plan, or nothing of it in the end.

Killed at every storage call, before it, after it and in the middle. The rows stay the same in any
case; whoever comes next finishes what was started.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice

import pytest

from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.testing.fault_plan import FaultPlan, crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.cancel.cancel import Cleanup, Ending, cancel
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from tests.engine.services.service_table import contents
from tests.rfc.plans import IS_SIMULATION, KINDS, LAZY, Kind, Trial, calls_of

# A prime, so that all kinds of deaths come up where not every one is tried.
STEP = 1 if IS_SIMULATION else 17
Ends = Callable[[Trial, FaultyStorage], None]


def waiting(kind: Kind) -> Trial:
    """A plan that nobody has started."""
    return Trial(kind, cancellable=True)


def abandoned(kind: Kind) -> Trial:
    """A plan of one who died when he had made all of his files."""
    trial = Trial(kind, cancellable=True)
    inflight, last = calls_of(kind, cancellable=True)
    trial.executes_until(inflight + (last - inflight) // 2)
    trial.pauses()
    return trial


def cancels(trial: Trial, stage: FaultyStorage) -> None:
    cancel(trial.world.context(90, stage, **LAZY), trial.plan, "in the way", by="a test")


def cleans(trial: Trial, stage: FaultyStorage) -> None:
    settings = {**LAZY, "lakewarden__table_service_rollback_delay": "0"}
    recover_failed_instants(trial.world.context(90, stage, **settings), with_plans=True)


def makes_room(trial: Trial, stage: FaultyStorage) -> None:
    context = trial.world.context(90, stage, **LAZY, **trial.kind.settings)
    done = schedule(context, trial.kind.service, PlanRequest(cancellable=False))
    assert isinstance(done, Scheduled)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("prepared", [waiting, abandoned])
@pytest.mark.parametrize("ends", [cancels, cleans, makes_room])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_plan_whose_canceller_dies_is_there_or_leaves_nothing(
    kind: Kind, ends: Ends, prepared: Callable[[Kind], Trial]
) -> None:
    endings = set()
    for plan in deaths(prepared(kind), ends):
        trial = prepared(kind)
        with suppress(Crashed):
            ends(trial, FaultyStorage(trial.world.storage, plan, trial.world.clock))
        endings.add(_recovered(trial, f"replay with plan {str(plan)!r}"))
    assert endings == {LedgerEnd.CLAIM if prepared is abandoned else LedgerEnd.NONE} | {
        LedgerEnd.CANCELLED
    }


def deaths(trial: Trial, ends: Ends) -> Iterator[FaultPlan]:
    stage = FaultyStorage(trial.world.storage, FaultPlan(), trial.world.clock)
    ends(trial, stage)
    yield from islice(crash_plans(stage.calls), 0, None, STEP)


def _recovered(trial: Trial, death: str) -> LedgerEnd:
    """What the dead one has left is gone on with; how far he had come."""
    world = trial.world
    rows = contents(trial.kind.shape, *trial.kind.history)
    assert world.rows() == rows, death
    end = read_ledger(world.storage, trial.plan).ends_in
    trial.pauses()
    recover_failed_instants(world.context(91, **LAZY))
    if end is LedgerEnd.CANCELLED:
        assert trial.instant is None, death
    else:
        assert trial.instant is not None, death
        answer = cancel(world.context(92, **LAZY), trial.plan, "again")
        assert (answer.outcome, answer.cleanup) == (Ending.CANCELLED, Cleanup.DONE), death
    trial.assert_sound()
    return end
