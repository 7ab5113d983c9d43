"""Places: a task knows wherever it runs whether its attempt may go on."""

import pickle
from pathlib import Path

import pytest

from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.task_context import FencedTask, FencedTaskContext
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import schedule
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.start import start
from lakewarden.engine.transaction.state.context import Context
from tests.engine.services.service_table import MOR, inserted, updated
from tests.writing.shapes import carry_out


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """A table with a pending plan that may be cancelled."""
    table = MOR.create(str(tmp_path / "t"))
    carry_out(table, inserted())
    carry_out(table, updated())
    storage, ports, settings = open_storage(Location(str(tmp_path / "t"))), Ports(), Settings()
    return Context(storage, open_lock(storage, settings, ports), ports, settings)


def started(context: Context) -> Attempt:
    plan = schedule(context, COMPACTION, PlanRequest(cancellable=True))
    assert plan
    attempt = start(context, plan.instant).attempt
    assert attempt is not None
    return attempt


def numbered(place: FencedTaskContext, task: int) -> tuple[int, int]:
    return place.task_attempt, task


def test_a_place_that_has_travelled_asks_the_ledger(context: Context) -> None:
    with started(context) as attempt:
        place = pickle.loads(pickle.dumps(FencedTaskContext.here(context.storage, attempt)))
        place.assert_mine()
        cancel(context, attempt.instant, "for a reason")
        with pytest.raises(Conflict, match="for a reason"):
            pickle.loads(pickle.dumps(place)).assert_mine()


def test_a_file_made_too_late_is_taken_away(context: Context) -> None:
    with started(context) as attempt:
        place = pickle.loads(pickle.dumps(FencedTaskContext.here(context.storage, attempt)))
        for name in ("in time", "too late"):
            context.storage.put(name, b"rows")
        place.keep("in time")
        cancel(context, attempt.instant, "for a reason")
        with pytest.raises(Conflict):
            place.keep("too late")
    assert context.storage.stat("in time") is not None
    assert context.storage.stat("too late") is None


def test_another_try_at_a_task_is_told_from_the_first(context: Context) -> None:
    with started(context) as attempt:
        work = FencedTask(FencedTaskContext.here(context.storage, attempt), numbered)
        assert work(5) == (0, 5)
        assert work.tried(3)(5) == (3, 5)
