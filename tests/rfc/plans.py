"""Plans to be tried out: one for each service, on a small table in memory, and what becomes of it.

Everybody is a process of his own: with his own view of the storage, which may kill him, or let
others act at one of its calls, or in a pause there. Time is simulated, and ids come from seeds.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TypeVar

from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.locks.table_lock import Patience, TableLock
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import Execution, execute
from lakewarden.engine.services.log_compaction.service import LOG_COMPACTION
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, TableService, schedule
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.timeline.instants.instant import Instant
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.cancel.cancel import Cancellation, cancel
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.sweep.sweep import sweep
from tests.engine.services.service_table import (
    ServiceWorld,
    contents,
    new_service_world,
    row,
    updated,
)
from tests.engine.transaction.fake_locks import NoLock
from tests.engine.transaction.hooked import Hook
from tests.writing.model import Write
from tests.writing.shapes import Shape

IS_SIMULATION = "LAKEWARDEN_KILLS" in os.environ
# How many of the calls of an execution others act at, unless it is at all of them.
PLACES = 4
PAUSE_MS = 10 * 60_000
SWEPT_AFTER_MS = 2 * 60 * 60_000
MINUTE_MS = 60_000
DELAY_MINUTES = 30
LAZY = {
    "hoodie__clean__failed__writes__policy": "LAZY",
    "lakewarden__table_service_rollback_delay": str(DELAY_MINUTES),
    # Waiting for the lock is no part of what is tried out here.
    "hoodie__write__lock__wait_time_ms": "1000",
    "hoodie__write__lock__num_retries": "0",
}


def more(number: int) -> Write:
    """Rows that are not there yet, in a small file of their own."""
    return Write("bulk_insert", tuple(row(f"k{number}{n}") for n in range(3)))


@dataclass(frozen=True, eq=False)
class Kind:
    """A service, and a table on which it has something to do."""

    name: str
    service: TableService
    shape: Shape
    history: tuple[Write, ...]
    settings: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


FLAT = Shape("mor", is_partitioned=False, is_event_time=False)
FLAT_COW = Shape("cow", is_partitioned=False, is_event_time=False)
WITH_LOGS = (Write("upsert", tuple(row(f"k{n}") for n in range(6))), updated(), updated(3, 3))
KINDS = (
    Kind("compaction", COMPACTION, FLAT, WITH_LOGS),
    Kind(
        "log_compaction",
        LOG_COMPACTION,
        FLAT,
        WITH_LOGS,
        {"hoodie__log__compaction__blocks__threshold": "2"},
    ),
    Kind("clustering", CLUSTERING, FLAT_COW, (more(1), more(2), more(3))),
)


@cache
def _planned(kind: Kind, *, cancellable: bool) -> tuple[ServiceWorld, str]:
    world = new_service_world(kind.shape, *kind.history)
    plan_request = PlanRequest(cancellable=cancellable)
    done = schedule(world.context(50, **LAZY, **kind.settings), kind.service, plan_request)
    assert isinstance(done, Scheduled), done
    world.clock.advance(1000)
    return world, done.instant


Answer = Execution | LakewardenError | None
ActedT = TypeVar("ActedT")
# Why one who is not needed has failed: who carries it out holds it, or has the lock at the moment.
BUSY = {"plan_held", "lock_held"}


class Trial:
    """A table with one plan on it, and those who deal with it."""

    def __init__(self, kind: Kind, *, cancellable: bool) -> None:
        before, self.plan = _planned(kind, cancellable=cancellable)
        self.world = before.copy()
        self.kind = kind
        self._seed = 50

    def executes(self, storage: Storage | None = None) -> Answer:
        """Somebody carries the plan out; None if he dies."""
        self._seed += 1
        try:
            context = self.world.context(self._seed, storage, **LAZY, **self.kind.settings)
            return execute(context, self.kind.service, self.plan)
        except LakewardenError as error:
            return error
        except Crashed:
            return None

    def executes_until(self, call: int) -> FaultyStorage:
        """Somebody begins to carry it out, and dies right after a call."""
        fault = Fault(call, FaultKind.FAIL_AFTER, is_fatal=True)
        stage = FaultyStorage(self.world.storage, FaultPlan((fault,)), self.world.clock)
        assert self.executes(stage) is None
        return stage

    def executes_while(
        self, call: int, *acts: Callable[[], ActedT | None]
    ) -> tuple[Answer, list[ActedT]]:
        """Somebody carries it out, and others act right after one of his calls, or at the end.

        His answer, and those of the others that have any.
        """
        found: list[ActedT | None] = []
        hook = Hook(call, lambda: found.extend(act() for act in acts))
        answer = self.executes(hook.storage(self.world.storage))
        if not hook.has_happened:
            found.extend(act() for act in acts)
        return answer, [one for one in found if one is not None]

    def assert_one_of_three_completes(self, call: int) -> None:
        """Two more begin with the plan at a call of the first, and one afterwards."""
        answer, others = self.executes_while(call, self.executes, self.executes)
        others.append(self.executes())
        assert len(completions(answer, *others)) == 1
        assert codes(answer, *others) <= BUSY
        assert self.is_completed
        self.assert_sound()

    def cleans(self, storage: Storage | None = None) -> LakewardenError | None:
        """Somebody cleans the table, and is lazy about what has failed; his error if he fails."""
        self._seed += 1
        try:
            clean(self.world.context(self._seed, storage, **LAZY, **self.kind.settings))
        except LakewardenError as error:
            return error
        except Crashed:
            pass
        return None

    def cleans_while(self, call: int, act: Callable[[], Answer]) -> list[Answer]:
        """Somebody cleans, and another one acts right after one of his calls; what he answers."""
        found: list[Answer] = []
        hook = Hook(call, lambda: found.append(act()))
        self.cleans(hook.storage(self.world.storage))
        return found

    def cancels(self, *, without_lock: bool = False) -> Cancellation | LakewardenError:
        """Somebody cancels the plan, by force where it takes force."""
        self._seed += 1
        context = self.world.context(self._seed, **LAZY)
        if without_lock:
            free = TableLock(NoLock, Patience(0), context.ports)
            context = replace(context, lock=free)
        try:
            return cancel(context, self.plan, "in the way", by="a test", force=True)
        except LakewardenError as error:
            return error

    def pauses(self) -> None:
        """Time goes by until a heartbeat that was not renewed counts for nothing."""
        self.world.clock.advance(PAUSE_MS)

    def grows_old(self) -> None:
        """Time goes by until nobody has to wait any longer for somebody to begin."""
        self.world.clock.advance(DELAY_MINUTES * MINUTE_MS)

    def end(self) -> LedgerEnd:
        """What the plan's ledger ends in."""
        return read_ledger(self.world.storage, self.plan).ends_in

    @property
    def instant(self) -> Instant | None:
        """The plan as the timeline shows it; None when it is not there any more."""
        found = self.world.snapshot().timeline.active.with_time(self.plan)
        return found[0] if found else None

    @property
    def is_completed(self) -> bool:
        return self.instant is not None and self.instant.is_completed

    def assert_sound(self) -> None:
        """The rows are what was written, and what belongs to nothing is gone in the end."""
        world = self.world
        expected = contents(self.kind.shape, *self.kind.history)
        assert world.rows() == expected
        for pause_ms in (PAUSE_MS, SWEPT_AFTER_MS):
            world.clock.advance(pause_ms)
            self._seed += 1
            last = world.context(self._seed, **LAZY)
            recover_failed_instants(last, with_plans=True)
            sweep(last)
        assert world.rows() == expected
        assert world.rows(use_metadata=False) == expected
        assert world.strays() == set()
        assert world.differences_of_listings() == set()


@cache
def calls_of(kind: Kind, *, cancellable: bool) -> tuple[int, int]:
    """The number of the call that makes a plan inflight, and of the last one of its execution."""
    trial = Trial(kind, cancellable=cancellable)
    stage = FaultyStorage(trial.world.storage, FaultPlan(), trial.world.clock)
    assert isinstance(trial.executes(stage), Execution)
    inflight = next(c.number for c in stage.calls if c.path.endswith(".inflight"))
    return inflight, len(stage.calls)


def places(first: int, last: int) -> Iterator[int]:
    """Calls at which others act: all of them, or some from the first to the last."""
    if IS_SIMULATION:
        yield from range(first, last + 1)
        return
    yield from sorted({first + round((last - first) * n / (PLACES - 1)) for n in range(PLACES)})


def completions(*answers: Answer) -> list[Execution]:
    """The answers of those who have completed the plan themselves."""
    return [
        answer
        for answer in answers
        if isinstance(answer, Execution) and not answer.was_completed_before
    ]


def codes(*answers: Answer) -> set[str]:
    """Why those have failed who did."""
    return {answer.code for answer in answers if isinstance(answer, LakewardenError)}
