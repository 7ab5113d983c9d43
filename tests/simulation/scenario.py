"""One run: two executors, a canceller, a cleaner, a writer and a planner around one plan.

They are real engine code, each a process of its own with its own view of the storage. Everything
that is drawn is drawn from one seed. At the end a fresh process recovers what is left.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from lakewarden.engine.file_groups.file_names import PARTITION_METADATA
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.properties import format_properties
from lakewarden.engine.kernel.errors import LakewardenError, Unsettled
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.planning.plan_request import Draft, Drafted, PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, TableService, schedule
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.table.config import PROPERTIES_PATH, load_config
from lakewarden.engine.transaction.cancel.cancel import Ending, cancel
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.state.context import (
    TABLE_SERVICES,
    Context,
    Service,
    load_for_writing,
)
from lakewarden.engine.transaction.sweep.sweep import sweep
from lakewarden.engine.transaction.window.window import INCREMENTAL
from tests.simulation.locks import LockKind
from tests.simulation.one_line_files import GROUPS, LINE_SERVICES, PARTITIONS, Touch, ingest
from tests.simulation.processes import Company, Lie
from tests.simulation.scheduler import (
    CALM,
    Chances,
    Counts,
    ScheduledRun,
    Scheduler,
    Violation,
)
from tests.simulation.watch import Promises, Watch

PROPERTIES = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "9",
    "hoodie.timeline.layout.version": "2",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.table.partition.fields": "p",
    "hoodie.table.recordkey.fields": "k",
}
# One thread, so that the calls of a run have one order; LAZY, since there are many writers.
ARGUMENTS = {
    "lakewarden.storage.threads": "1",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
}
DEAD_AFTER_MS = 121_000
SWEPT_AFTER_MS = 3_601_000
TRIES = 3

# What an additional actor does, who knows the plan.
Stranger = Callable[[Context, str], object]


@dataclass(frozen=True, slots=True)
class Scenario:
    """What the actors find, and what they may rely on."""

    service: Service
    is_cancellable: bool
    lock: LockKind
    chances: Chances = field(default_factory=Chances)
    # A guard that is missing: what the storage tells the actors is not true.
    lie: Lie | None = None
    # Somebody without manners, under the name of what is wrong with him.
    stranger: Stranger | None = None
    # Those who take no part, by the first word of their names.
    without: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        kind = "cancellable" if self.is_cancellable else "immutable"
        return f"{self.service}-{kind}-{self.lock}"


def groups_of(drafted: Drafted) -> frozenset[FileGroupId]:
    return drafted.groups if isinstance(drafted, Draft) else frozenset()


def _new_group(context: Context) -> FileGroupId:
    return FileGroupId("p=b", f"n{context.ports.ids.fresh()[:8]}")


@cache
def _prepared(
    kind: "type[Run]", service: Service, is_cancellable: bool
) -> tuple[tuple[tuple[str, bytes], ...], str]:
    """The files of a table with a plan that has something to do, and the instant of the plan."""
    scheduler = Scheduler("preparing", CALM)
    storage = fresh_memory_storage(clock=scheduler.clock)
    kind.create(storage)
    company = Company(storage, scheduler, LockKind.NONE, Settings.of(arguments=kind.arguments))
    plans: list[str] = []

    def prepare(context: Context) -> None:
        kind.fill(context, service)
        # A first plan has been carried out, so that the next one has a window.
        first = schedule(context, kind.services[service], PlanRequest())
        assert isinstance(first, Scheduled), first
        execute(context, kind.services[service], first.instant)
        kind.fill_again(context, service)
        planned = schedule(context, kind.services[service], PlanRequest(cancellable=is_cancellable))
        assert isinstance(planned, Scheduled), planned
        plans.append(planned.instant)

    company.enters("preparer", prepare)
    scheduler.run()
    assert plans
    return tuple((entry.path, storage.read(entry.path)) for entry in storage.walk("")), plans[0]


class Run(ScheduledRun):
    """One run of a scenario with a seed: on data files of one line, which cost next to nothing."""

    arguments: Mapping[str, str] = ARGUMENTS
    services: Mapping[Service, TableService] = LINE_SERVICES
    has_lines = True

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.scenario = scenario
        files, self.plan = _prepared(type(self), scenario.service, scenario.is_cancellable)
        self.scheduler = Scheduler(f"{scenario.name} {seed}", scenario.chances)
        self.storage = fresh_memory_storage(clock=self.scheduler.clock)
        for path, content in files:
            self.storage.put(path, content)
        settings = Settings.of(arguments=self.arguments)
        self._company = Company(self.storage, self.scheduler, scenario.lock, settings)
        self._company.lie = scenario.lie
        promises = Promises(has_lock=scenario.lock is LockKind.KEPT, has_lines=self.has_lines)
        self.watch = Watch(self.storage, load_config(self.storage).layout, promises)
        self._company.watch = self.watch

    # What there is before the run, and what is written in it.

    @classmethod
    def create(cls, storage: MemoryStorage) -> None:
        """An empty table."""
        storage.put(PROPERTIES_PATH, format_properties(PROPERTIES, "made by a test"))
        for partition in PARTITIONS:
            storage.put(f"{partition}/{PARTITION_METADATA}", b"#partition metadata\n")

    @classmethod
    def fill(cls, context: Context, service: Service) -> None:
        """Work for a first plan."""
        for group in GROUPS:
            ingest(context, Touch((), new=group))
        cls.fill_again(context, service)

    @classmethod
    def fill_again(cls, context: Context, service: Service) -> None:
        """Work for one more plan."""
        ingest(context, Touch((0, 1, 2)))
        ingest(context, Touch((0, 1)) if service is Service.CLUSTERING else Touch((0, 1, 2)))

    def write(self, context: Context) -> tuple[str, tuple[str, ...]]:
        """One write; its instant, and the plans that gave way to it."""
        chance = self.chance
        touch = Touch(
            tuple(chance.sample(range(3), chance.randrange(1, 3))),
            as_logs=chance.random() < 0.6,
            new=_new_group(context) if chance.random() < 0.3 else None,
        )
        receipt = ingest(context, touch)
        return receipt.instant, receipt.preempted

    def assert_rows(self) -> None:
        """What readers have to see at the end; the watch has looked at lines all the time."""

    def play(self) -> Counts:
        """Run it, and raise what was broken."""
        # The table was made in the past of the run.
        self.scheduler.clock.advance(60_000)
        late = self.chance.randrange
        for name, work, at_latest, share in (
            ("executor 1", self._executes, 30, 1.0),
            ("executor 2", self._executes, 100, 1.0),
            ("executor 3", self._executes, 200, 0.25),
            ("canceller", self._cancels, 300, 1.0),
            ("cleaner", self._cleans, 200, 1.0),
            ("writer", self._writes, 160, 1.0),
            ("planner", self._plans, 160, 0.3),
        ):
            takes_part = name.split()[0] not in self.scenario.without
            if takes_part and self.chance.random() < share:
                self._enters(name, work, late(at_latest))
        if (stranger := self.scenario.stranger) is not None:
            for number in range(3):
                self._enters(f"stranger {number}", lambda own: stranger(own, self.plan), late(250))
        self.scheduler.run()
        self.scheduler.chances = CALM
        self._enters("fresh one", self._recovers, 0)
        self.scheduler.run()
        self.watch.assert_at_rest()
        self.assert_rows()
        return self.scheduler.counts

    def _enters(self, name: str, work: Callable[[Context], object], late_by: int) -> None:
        self._company.enters(name, work, late_by=late_by)

    # What each of them does.

    def _executes(self, context: Context) -> object:
        service = self.services[self.scenario.service]
        return self._again(context, lambda: self._carries_out(context, service, self.plan))

    def _carries_out(self, context: Context, service: object, plan: str) -> object:
        done = execute(context, service, plan)  # type: ignore[arg-type]
        self.watch.told_committed(done.instant)
        return done

    def _cancels(self, context: Context) -> object:
        return self._again(context, lambda: self._cancel(context, self.plan))

    def _cancel(self, context: Context, plan: str) -> object:
        force = self.chance.random() < 0.5
        answer = cancel(context, plan, "in the way", force=force)
        if answer.outcome is Ending.ALREADY_COMMITTED:
            self.watch.told_committed(plan)
        else:
            self.watch.told_cancelled(plan)
        return answer

    def _cleans(self, context: Context) -> object:
        for _ in range(2):
            self._again(context, lambda: (recover_failed_instants(context), sweep(context)))
            context.ports.clock.sleep(self.chance.choice((1, 60, 200)))
        return None

    def _writes(self, context: Context) -> object:
        return self._again(context, lambda: self._write(context))

    def _write(self, context: Context) -> str:
        instant, preempted = self.write(context)
        self.watch.told_committed(instant)
        for plan in preempted:
            self.watch.told_cancelled(plan)
        return instant

    def _plans(self, context: Context) -> object:
        """Another plan, by any service, which may want the same file groups."""
        service = self.services[self.chance.choice(tuple(self.services))]
        planned = self._again(context, lambda: schedule(context, service, PlanRequest()))
        if isinstance(planned, Scheduled) and self.chance.random() < 0.7:
            return self._again(
                context, lambda: self._carries_out(context, service, planned.instant)
            )
        return planned

    def _again(self, context: Context, act: Callable[[], object]) -> object:
        """Try it some times: most errors say that it may work later."""
        for left in reversed(range(TRIES)):
            try:
                return act()
            except LakewardenError as error:
                if not left or isinstance(error, Unsettled) or error.kind == "invalid_request":
                    return error
            context.ports.clock.sleep(self.chance.choice((0.01, 1, 100, 200)))
        return None

    def _recovers(self, context: Context) -> None:
        """What anybody does who comes later: repair, carry out what waits, sweep."""
        for _ in range(2):
            self.scheduler.advance(DEAD_AFTER_MS)
            recover_failed_instants(context)
            sweep(context)
        for plan in load_for_writing(context).timeline.active.pending(TABLE_SERVICES):
            service = Service.of(plan.action)
            assert service is not None
            try:
                execute(context, self.services[service], plan.requested)
            except LakewardenError:
                cancel(context, plan.requested, "nobody can carry it out", force=True)
        for _ in range(2):
            self.scheduler.advance(SWEPT_AFTER_MS)
            recover_failed_instants(context)
            sweep(context)
        self._assert_nothing_forgotten(context)

    def _assert_nothing_forgotten(self, context: Context) -> None:
        """A plan for what has changed, was skipped or returned takes what any plan would."""
        snapshot = load_for_writing(context)
        looking = Settings.of(arguments={**self.arguments, INCREMENTAL.key: "false"})
        everything = replace(context, settings=looking)
        service = self.services[self.scenario.service]
        full = groups_of(service.draft(everything, snapshot, PlanRequest()))
        missed = full - groups_of(service.draft(context, snapshot, PlanRequest()))
        if missed:
            raise Violation(f"The next {service.service} forgets {sorted(missed)}.")
