"""Guards matter: without each of them some promise is broken, and with it none is.

A guard is taken away by a storage that lies to all actors, or by exchanging the public function
that asserts it. That an attempt seems to be alive is no guard, only a hint: without it all holds.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.kernel.errors import Defect, LakewardenError
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.state.context import Context, Service, load_for_writing
from lakewarden.engine.transaction.sweep import sweep
from lakewarden.engine.transaction.sweep.sweep import find_written, remove_written
from tests.simulation import broken_storages
from tests.simulation.locks import LockKind
from tests.simulation.one_line_files import LINE_SERVICES, Touch, ingest
from tests.simulation.scenario import Run, Scenario
from tests.simulation.scheduler import Violation

SEEDS = 150
CONTROLS = 20
IMMUTABLE = Scenario(Service.COMPACTION, False, LockKind.NONE)
CLUSTERING = Scenario(Service.CLUSTERING, True, LockKind.KEPT)


def violations(scenario: Scenario, seeds: int = SEEDS) -> int | None:
    """The first seed with which a promise is broken."""
    for seed in range(seeds):
        try:
            Run(scenario, seed).play()
        except Violation:
            return seed
    return None


@pytest.mark.parametrize(
    ("scenario", "lie"),
    [
        pytest.param(IMMUTABLE, broken_storages.overwrites_ledger, id="ledger order"),
        pytest.param(IMMUTABLE, broken_storages.appends_anywhere, id="claim check"),
    ],
)
def test_a_promise_is_broken_without(scenario: Scenario, lie: Callable[[Storage], Storage]) -> None:
    assert violations(replace(scenario, lie=lie)) is not None


def writes_too(context: Context, plan: str) -> None:
    """One more writer, to the same file groups."""
    with suppress(LakewardenError):
        ingest(context, Touch((0, 1), as_logs=False))


def plans_more(context: Context, plan: str) -> None:
    """One who writes somewhere else, and has that clustered while the plan is pending."""
    with suppress(LakewardenError):
        ingest(context, Touch((), new=FileGroupId("p=b", f"n{context.ports.ids.fresh()[:8]}")))
        scheduled = schedule(context, LINE_SERVICES[Service.CLUSTERING], PlanRequest())
        if isinstance(scheduled, Scheduled):
            execute(context, LINE_SERVICES[Service.CLUSTERING], scheduled.instant)


def removes_outputs(context: Context, plan: str) -> None:
    """Another engine that takes pending writes for dead, and has the lock meanwhile."""
    with context.lock.hold():
        pending = {
            instant.requested for instant in load_for_writing(context).timeline.active.pending()
        }
        for instant in sorted(pending):
            for file in find_written(context.storage, instant):
                context.storage.delete(file.path)


def removes_without_right(context: Context, plan: str) -> None:
    """One of us who wants to remove what an attempt has made without ending it."""
    ledger = read_ledger(context.storage, plan)
    with suppress(Defect):
        remove_written(context, ledger, 0, find_written(context.storage, plan))


STRANGERS = {
    "reload": replace(CLUSTERING, stranger=writes_too),
    "hand-back": replace(CLUSTERING, stranger=plans_more, without=("executor", "writer")),
    "output check": replace(CLUSTERING, is_cancellable=False, stranger=removes_outputs),
    "law 1": replace(IMMUTABLE, stranger=removes_without_right),
}


@pytest.mark.parametrize("scenario", STRANGERS.values(), ids=STRANGERS)
def test_no_promise_is_broken_by_strangers(scenario: Scenario) -> None:
    assert violations(scenario, CONTROLS) is None


@pytest.mark.parametrize(
    ("guard", "lie"),
    [
        ("reload", broken_storages.never_reloads),
        ("hand-back", broken_storages.forgets_cancels),
        ("output check", broken_storages.keeps_outputs),
    ],
)
def test_with_strangers_a_promise_is_broken_without(
    guard: str, lie: Callable[[Storage], Storage]
) -> None:
    assert violations(replace(STRANGERS[guard], lie=lie)) is not None


def test_a_promise_is_broken_without_law_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "assert_may_delete", lambda ledger, attempt: None)
    assert violations(STRANGERS["law 1"]) is not None


@pytest.mark.parametrize("lock", LockKind)
@pytest.mark.parametrize("is_cancellable", [True, False])
def test_no_promise_rests_on_signs_of_life(lock: LockKind, is_cancellable: bool) -> None:
    scenario = Scenario(
        Service.CLUSTERING, is_cancellable, lock, lie=broken_storages.hides_heartbeats
    )
    assert violations(scenario, CONTROLS) is None
