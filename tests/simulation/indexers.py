"""Indexers, simulated: indexes planned, built, called off and resumed beside writers, in any order.

Whoever builds may pause beyond every expiry, die, or go on after another one has taken its place.
At each moment at which the table has changed for readers, what a read finds by an index is held
against what it finds without one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial

from lakewarden import Table
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.metadata.writing.definitions_file import secondary_index_definition
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.indexing.request import WantedIndex
from lakewarden.engine.services.indexing.run_build import pending_indexing, run_build
from lakewarden.engine.services.indexing.schedule_build import schedule_build
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.rollback_request import rollback
from lakewarden.engine.transaction.state.context import Context, load_for_writing
from lakewarden.engine.transaction.sweep.sweep import sweep
from lakewarden.engine.write import operations
from lakewarden.engine.write.writer import TableWriter
from tests.all_kinds import differences
from tests.crash.dying_operations import ports
from tests.engine.services.indexing.builds_kit import Deaf, Unknowing
from tests.engine.services.service_table import inserted, row, updated
from tests.simulation.locks import LockKind
from tests.simulation.processes import Company, Lie
from tests.simulation.scenario import ARGUMENTS, DEAD_AFTER_MS, SWEPT_AFTER_MS
from tests.simulation.scheduler import (
    CALM,
    Chances,
    Counts,
    ScheduledRun,
    Scheduler,
    Violation,
)
from tests.writing.model import ModelRow, Write, contents_of
from tests.writing.shapes import Shape

KEYS = (*(f"k{number}" for number in range(6)), "n0", "n1")
NAMES = ("red", "blue")
RECORDS = WantedIndex(partition="record_index")
SHARDS = WantedIndex(partition="record_index", is_partitioned=True)
BY_NAME = WantedIndex(
    partition="secondary_index_by_name",
    definition=secondary_index_definition("secondary_index_by_name", "name"),
)
PLANS = ((RECORDS,), (RECORDS,), (RECORDS, BY_NAME), (SHARDS,))
_TIMELINE = ".hoodie/timeline/"
_DAMAGE = ("corrupt_table", "defect")


@dataclass(frozen=True, slots=True)
class IndexerKind:
    """What the actors may rely on, and what disturbs them."""

    lock: LockKind = LockKind.KEPT
    chances: Chances = field(default_factory=Chances)
    lie: Lie | None = None
    # How likely each takes part.
    shares: tuple[tuple[str, float], ...] = ()

    @property
    def name(self) -> str:
        return f"indexers-{self.lock}"

    def share(self, name: str, usual: float) -> float:
        return dict(self.shares).get(name, usual)


@cache
def _prepared(type_: str) -> tuple[tuple[str, bytes], ...]:
    clock = ManualClock()
    storage = fresh_memory_storage(clock=clock)
    Shape(type_).create("", storage=storage, ports=ports(clock, 1))
    for number, write in enumerate((inserted(), updated(3)), start=2):
        clock.advance(1000)
        Table.on(storage, ports(clock, number)).upsert(write.table())
    return tuple((entry.path, storage.read(entry.path)) for entry in storage.walk(""))


class IndexerRun(ScheduledRun):
    """One run with a seed."""

    def __init__(self, kind: IndexerKind, seed: int) -> None:
        self.kind = kind
        self.scheduler = Scheduler(f"{kind.name} {seed}", kind.chances)
        self.storage = self._filled(self.chance.choice(("cow", "mor")))
        settings = Settings.of(arguments=ARGUMENTS)
        self._company = Company(self.storage, self.scheduler, kind.lock, settings)
        self._company.watch = self._watched
        self._company.lie = kind.lie
        self.looks = 0
        self._written = 0

    def play(self) -> Counts:
        """Run it, and raise what was broken."""
        self.scheduler.clock.advance(60_000)
        late = self.chance.randrange
        for name, work, at_latest, share in (
            ("indexer 1", self._indexes, 30, 1.0),
            ("indexer 2", self._indexes, 250, 0.7),
            ("writer 1", self._writes, 250, 1.0),
            ("writer 2", self._writes, 250, 0.6),
            ("unknowing writer", self._writes_unknowing, 250, 0.4),
            ("deaf writer", self._writes_deaf, 300, 0.0),
            ("undoer", self._undoes, 300, 0.5),
            ("keeper", self._keeps, 200, 0.3),
        ):
            if self.chance.random() < self.kind.share(name, share):
                self._company.enters(name, work, late_by=late(at_latest))
        self.scheduler.run()
        self._look("when all have ended")
        if self._table()._state().metadata.unheard_write:
            # All that is left is to read.
            return self.scheduler.counts
        self.scheduler.chances = CALM
        self._company.enters("fresh one", self._recovers)
        self.scheduler.run()
        self._look("at the end")
        for difference in differences(self._table()):
            raise Violation(f"An index is not true: {difference}")
        return self.scheduler.counts

    def _filled(self, type_: str) -> MemoryStorage:
        storage = fresh_memory_storage(clock=self.scheduler.clock)
        for path, content in _prepared(type_):
            storage.put(path, content)
        return storage

    def _table(self) -> Table:
        return Table.on(self.storage, ports(ManualClock(self.scheduler.clock.now_ms()), 7))

    # What each of them does.

    def _indexes(self, context: Context) -> None:
        for _ in range(self.chance.choice((1, 2, 3))):
            pending = pending_indexing(load_for_writing(context))
            word = self.chance.choice(("build",) * 4 + ("run",) * 3 + ("schedule", "cancel"))
            if word == "cancel":
                for one in pending:
                    self._try(partial(cancel, context, one, "not wanted", force=True))
            elif word == "run" and pending:
                self._try(partial(run_build, context, pending[0]))
            else:
                self._try(partial(self._builds, context, runs=word != "schedule"))
            context.ports.clock.sleep(self.chance.choice((0.01, 1, 100)))

    def _builds(self, context: Context, *, runs: bool) -> None:
        plan = schedule_build(context, self.chance.choice(PLANS))
        if runs:
            run_build(context, plan.instant)

    def _writes(self, context: Context) -> None:
        for _ in range(self.chance.choice((1, 2))):
            self._try(partial(self._write, context))
            context.ports.clock.sleep(self.chance.choice((0.01, 1, 100)))

    def _writes_unknowing(self, context: Context) -> None:
        """As Java's do by default: builds and their plans say nothing to it."""
        self._writes_with(context, Unknowing(context.storage, clock=context.ports.clock))

    def _writes_deaf(self, context: Context) -> None:
        """As older versions do: the metadata table says nothing to it, and it nothing there."""
        self._writes_with(context, Deaf(context.storage, clock=context.ports.clock))

    def _writes_with(self, context: Context, own: Storage) -> None:
        self._writes(Context(own, context.lock, context.ports, context.settings))

    def _write(self, context: Context) -> None:
        self._written += 1
        keys = self.chance.sample(KEYS, 2)
        rows = tuple(self._row(key) for key in keys)
        operation = operations.upsert if self.chance.random() < 0.7 else operations.delete
        write = Write("upsert", rows).table()
        request = (
            operation(write)
            if operation is operations.upsert
            else operations.delete(write, load_for_writing(context).config)
        )
        TableWriter(context).write(request)

    def _row(self, key: str) -> ModelRow:
        home = "ab"[int(key[1:]) % 2]
        return row(key, 10 + self._written, home, self.chance.choice(NAMES))

    def _undoes(self, context: Context) -> None:
        """The newest write goes, whoever has made it."""
        writes = load_for_writing(context).timeline.active.completed()
        newest = max(one.requested for one in writes)
        self._try(partial(rollback, context, newest))

    def _keeps(self, context: Context) -> None:
        planned = self._try(partial(schedule, context, COMPACTION, PlanRequest()))
        if isinstance(planned, Scheduled):
            self._try(partial(execute, context, COMPACTION, planned.instant))

    def _try(self, act: Callable[[], object]) -> object:
        try:
            return act()
        except LakewardenError as error:
            if error.kind in _DAMAGE:
                raise Violation(f"{error.code}: {error}") from error
            return error

    def _recovers(self, context: Context) -> None:
        for wait_ms in (DEAD_AFTER_MS, SWEPT_AFTER_MS):
            self.scheduler.advance(wait_ms)
            recover_failed_instants(context)
            sweep(context)
        for instant in pending_indexing(load_for_writing(context)):
            self._try(partial(run_build, context, instant))
        if pending_indexing(load_for_writing(context)):
            raise Violation("A build never ends.")
        self._write(context)

    # What readers see.

    def _watched(self, operation: str, path: str) -> None:
        """Look at the table whenever it has changed for readers."""
        name = path.removeprefix(_TIMELINE)
        is_completed = path.startswith(_TIMELINE) and "_" in name and "/" not in name
        if is_completed or path.endswith("/hoodie.properties"):
            try:
                self._look(f"after {operation} {path}")
            except LakewardenError as error:
                raise Violation(f"A read fails after {operation} {path}: {error}") from error

    def _look(self, when: str) -> None:
        table = self._table()
        ready = set(table.config.metadata_partitions)
        if not ready & {"record_index", "secondary_index_by_name"}:
            return
        self.looks += 1
        rows = contents_of(table.read_arrow(use_metadata=False))
        keys = list(self.chance.sample(KEYS, 3))
        self._compare(when, table.read_arrow(filter=[("id", "in", keys)]), rows, "id", keys)
        if "record_index" in ready:
            self._compare(when, table.lookup(keys), rows, "id", keys)
        if "secondary_index_by_name" in ready:
            asked = [("name", "in", list(NAMES))]
            self._compare(when, table.read_arrow(filter=asked), rows, "name", NAMES)

    def _compare(
        self, when: str, found: object, rows: list[ModelRow], column: str, asked: object
    ) -> None:
        want = [one for one in rows if one[column] in asked]  # type: ignore[operator]
        if contents_of(found) != want:  # type: ignore[arg-type]
            raise Violation(f"{contents_of(found)} instead of {want} {when}")  # type: ignore[arg-type]
