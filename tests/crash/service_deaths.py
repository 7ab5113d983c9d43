"""Deaths of table services: a plan being made, or carried out, by somebody who dies on the way.

Readers see the same rows whatever happens; the next ones to come finish or cancel what is pending.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.services.execution.execute import execute, pending_plans
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, TableService, schedule
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.testing.fault_plan import FaultPlan, crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.state.context import Context
from tests.crash.dying_operations import DEAD_AFTER_MS, SWEPT_AFTER_MS
from tests.engine.services.service_table import ServiceWorld, contents, row
from tests.writing.model import Write
from tests.writing.shapes import Shape

# Rows that no plan is about, and the last ones.
BESIDE = Write("upsert", (row("beside", 3, "c"),))
LAST = Write("upsert", (row("last", 10, "c"),))
# What an attempt meets that comes too late.
_OVER = ("plan_not_executable", "plan_cancelled")


@dataclass(frozen=True)
class Mortal:
    """A service at one of its two works, and how it is set."""

    service: TableService
    is_planned: bool
    is_cancellable: bool = True
    arguments: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        work = "execute" if self.is_planned else "schedule"
        return work if self.is_cancellable else f"{work} immutable"

    def context(self, world: ServiceWorld, seed: int, storage: Storage | None = None) -> Context:
        return world.context(seed, storage, **self.arguments)

    def prepare(self, world: ServiceWorld) -> None:
        if self.is_planned:
            self._plan(self.context(world, 40))
        # Whatever is written from now on has other ids than the history.
        world.clock.advance(200_000)

    def live(self, world: ServiceWorld, storage: Storage) -> None:
        context = self.context(world, 50, storage)
        if self.is_planned:
            execute(context, self.service, pending_plans(context, self.service)[0])
        else:
            self._plan(context)

    def finish(self, world: ServiceWorld) -> None:
        """Carry out what is pending, or cancel it where that is all that can be done."""
        context = self.context(world, 70)
        for instant in pending_plans(context, self.service):
            try:
                execute(context, self.service, instant)
            except Conflict as refusal:
                if refusal.code not in _OVER:
                    raise
                cancel(context, instant, "its attempt has died")

    def _plan(self, context: Context) -> None:
        answer = schedule(context, self.service, PlanRequest(cancellable=self.is_cancellable))
        assert isinstance(answer, Scheduled), answer


def deaths(
    before: ServiceWorld, mortal: Mortal, *, first: int, stride: int
) -> Iterator[tuple[str, ServiceWorld]]:
    """The world after each death, of every so many, and the line that replays it."""
    rehearsal = before.copy()
    faulty = FaultyStorage(rehearsal.storage, FaultPlan(), rehearsal.clock)
    mortal.live(rehearsal, faulty)
    plans = list(crash_plans(faulty.calls))
    assert len(plans) > 5
    for plan in plans[first::stride]:
        world = before.copy()
        with suppress(Crashed):
            mortal.live(world, FaultyStorage(world.storage, plan, world.clock))
        yield f"{mortal}, replay with plan {str(plan)!r}", world


def assert_rows(world: ServiceWorld, shape: Shape, writes: tuple[Write, ...], death: str) -> None:
    """Readers see what was written, whether they ask the metadata table or list."""
    expected = contents(shape, *writes)
    assert world.rows() == expected, f"{death}: rows differ"
    assert world.rows(use_metadata=False) == expected, f"{death}: rows differ by listing"


def assert_tidy(world: ServiceWorld, death: str) -> None:
    """No file is left that belongs to nothing, and nothing is pending."""
    assert world.strays() == set(), f"{death}: stray files"
    assert world.differences_of_listings() == set(), f"{death}: files that are not there"
    assert not world.table(62).timeline().pending(), f"{death}: something is still pending"


def assert_recovers(
    world: ServiceWorld, shape: Shape, mortal: Mortal, writes: tuple[Write, ...], death: str
) -> None:
    """What was written stays, whatever comes next; the last of the writes come after the death."""
    *history, following = writes
    assert_rows(world, shape, tuple(history), death)
    world.clock.advance(DEAD_AFTER_MS)
    # Whoever writes next takes away a plan that was never published as a whole.
    world.write(BESIDE)
    mortal.finish(world)
    assert_rows(world, shape, (*history, BESIDE), death)
    world.write(following)
    assert_rows(world, shape, (*history, BESIDE, following), death)
    world.clock.advance(SWEPT_AFTER_MS)
    world.write(LAST)
    assert_rows(world, shape, (*history, BESIDE, following, LAST), death)
    assert_tidy(world, death)
