"""A plan and a write that want the same file groups, in any order of their storage calls.

A cancellable plan never defeats a write that has announced itself: the write commits.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.log_compaction.service import LOG_COMPACTION
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, TableService, schedule
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.table.config import load_config
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.entries import Fenced
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.write import operations
from lakewarden.engine.write.request import WriteRequest
from lakewarden.engine.write.writer import TableWriter
from tests.engine.services.service_table import inserted, new_service_world, updated
from tests.simulation.locks import LockKind
from tests.simulation.processes import Company
from tests.simulation.rivals import SEVERAL
from tests.simulation.scheduler import CALM, Counts, ScheduledRun, Scheduler, Violation
from tests.writing.shapes import Shape

COW, MOR = Shape("cow", is_partitioned=False), Shape("mor", is_partitioned=False)
PLANNED: dict[str, tuple[TableService, Shape]] = {
    "compaction": (COMPACTION, MOR),
    "log_compaction": (LOG_COMPACTION, MOR),
    "clustering_cow": (CLUSTERING, COW),
    "clustering_mor": (CLUSTERING, MOR),
}
WRITES: dict[str, Callable[[Context], WriteRequest]] = {
    "upsert": lambda context: operations.upsert(updated(ts=9).table()),
    "overwrite": lambda context: operations.overwrite(updated(ts=9).table()),
    "delete": lambda context: operations.delete(
        updated(2).table().select(["id"]), load_config(context.storage)
    ),
}
OPTIONS = {
    **SEVERAL,
    "hoodie.log.compaction.blocks.threshold": "2",
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true",
}


@cache
def _prepared(plan_name: str) -> tuple[int, tuple[tuple[str, bytes], ...], str]:
    """When a table was ready, its files, and the instant of its plan."""
    service, shape = PLANNED[plan_name]
    world = new_service_world(shape, inserted(), updated(), updated(ts=3))
    keywords = {key.replace(".", "__"): value for key, value in OPTIONS.items()}
    request = PlanRequest(cancellable=True)
    scheduled = schedule(world.context(50, **keywords), service, request)
    assert isinstance(scheduled, Scheduled), scheduled
    files = ((entry.path, world.storage.read(entry.path)) for entry in world.storage.walk(""))
    return world.clock.now_ms(), tuple(files), scheduled.instant


@dataclass
class PlanRivalry(ScheduledRun):
    """One race of an execution of a plan and a write, with a seed."""

    plan_name: str
    write_name: str
    seed: int
    answers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.service, _ = PLANNED[self.plan_name]
        now_ms, files, self.plan = _prepared(self.plan_name)
        self.scheduler = Scheduler(f"{self.plan_name} {self.write_name} {self.seed}", CALM)
        self.scheduler.clock.advance(now_ms - self.scheduler.clock.now_ms() + 60_000)
        self.storage = fresh_memory_storage(clock=self.scheduler.clock)
        for path, content in files:
            self.storage.put(path, content)
        settings = Settings.of(arguments=OPTIONS)
        self._company = Company(self.storage, self.scheduler, LockKind.KEPT, settings)

    def play(self) -> Counts:
        """Run it, and raise what was broken."""
        write = WRITES[self.write_name]
        for name, work in (
            ("plan", lambda own: execute(own, self.service, self.plan)),
            ("write", lambda own: TableWriter(own).write(write(own))),
        ):
            late_by = self.chance.choice((0, 0, 30, 90))
            self._company.enters(name, self._answered(name, work), late_by=late_by)
        self.scheduler.run()
        is_committed = read_ledger(self.storage, self.plan).ends_in is LedgerEnd.COMMITTED
        # A plan that has completed before the write has announced itself may be in its way.
        if self.answers["write"] != "committed" and not is_committed:
            raise Violation(f"Neither has committed: {self.answers}.")
        if self.answers["write"] == "write_conflict" and not self._came_first():
            raise Violation(f"The write had announced itself before: {self.answers}.")
        return self.scheduler.counts

    def _answered(
        self, name: str, work: Callable[[Context], object]
    ) -> Callable[[Context], object]:
        def answered(context: Context) -> None:
            try:
                work(context)
                self.answers[name] = "committed"
            except LakewardenError as error:
                self.answers[name] = error.code

        return answered

    def _came_first(self) -> bool:
        """Whether the plan had committed before the write fenced it.

        With the fence the write has announced itself to plans that have looked before.
        """
        entries = read_ledger(self.storage, self.plan).entries
        return not any(isinstance(entry, Fenced) for entry in entries)
