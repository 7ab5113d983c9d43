"""One run: two executors, a canceller, a cleaner, a writer and a planner around one plan.

They are real engine code, each a process of its own with its own view of the storage. Everything
that is drawn is drawn from one seed. At the end a fresh process recovers what is left.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random

from lakewarden.engine.formats.properties import format_properties
from lakewarden.engine.kernel.errors import LakewardenError, Unsettled
from lakewarden.engine.kernel.ids import SeededIds
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import Patience, TableLock
from lakewarden.engine.plans.cancel import Ending, cancel
from lakewarden.engine.plans.commit import Receipt
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.failed_writes import settle
from lakewarden.engine.plans.moment import look
from lakewarden.engine.plans.service import TABLE_SERVICES, Service
from lakewarden.engine.plans.sweep import sweep
from lakewarden.engine.plans.window import INCREMENTAL
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.run.processes import ProcessMark
from lakewarden.engine.services.choice import Draft, Drafted
from lakewarden.engine.services.execute import execute
from lakewarden.engine.services.schedule import Scheduled, schedule
from lakewarden.engine.services.wish import Wish
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import PROPERTIES_PATH, load_config
from lakewarden.engine.view.file_names import PARTITION_METADATA
from lakewarden.engine.view.slices import SliceKey
from tests.simulation.lines import GROUPS, LINE_SERVICES, PARTITIONS, Touch, ingest
from tests.simulation.locks import LockKind, Place, SimulatedLock
from tests.simulation.scheduler import (
    CALM,
    PAUSE_MAX_MS,
    Actor,
    ActorBackground,
    ActorClock,
    Chances,
    Counts,
    Scheduler,
    Step,
    Violation,
)
from tests.simulation.stage import staged
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
SETTINGS = Settings.of(
    arguments={
        "lakewarden.storage.threads": "1",
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    }
)
EVERYTHING = Settings.of(arguments={INCREMENTAL.key: "false", "lakewarden.storage.threads": "1"})
DEAD_AFTER_MS = 121_000
SWEPT_AFTER_MS = 3_601_000
TRIES = 3

Lie = Callable[[Storage], Storage]
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


class SimulatedProcesses:
    """One process for each actor; whether a death is noticed at once differs from run to run."""

    def __init__(self, scheduler: Scheduler, number: int, *, are_seen: bool) -> None:
        self._scheduler = scheduler
        self._number = number
        self._are_seen = are_seen

    def mine(self) -> ProcessMark:
        return ProcessMark("host", "machine one", self._number, "9")

    def is_gone(self, mark: ProcessMark) -> bool:
        return self._are_seen and self._scheduler.is_dead(mark.pid)


@cache
def _prepared(service: Service, is_cancellable: bool) -> tuple[tuple[tuple[str, bytes], ...], str]:
    """The files of a table with three file groups and a plan, and the instant of the plan."""
    run = _Stage(fresh_memory_storage(), Scheduler("preparing", CALM), LockKind.NONE)
    run.storage.put(PROPERTIES_PATH, format_properties(PROPERTIES, "made by a test"))
    for partition in PARTITIONS:
        run.storage.put(f"{partition}/{PARTITION_METADATA}", b"#partition metadata\n")
    plans: list[str] = []

    def prepare(context: Context) -> None:
        for group in GROUPS:
            ingest(context, Touch((), new=group))
        for touch in (Touch((0, 1, 2)), Touch((0, 1, 2))):
            ingest(context, touch)
        # A first plan has been carried out, so that the next one has a window.
        first = schedule(context, LINE_SERVICES[service], Wish())
        assert isinstance(first, Scheduled)
        execute(context, LINE_SERVICES[service], first.instant)
        for touch in (Touch((0, 1, 2)), Touch((0, 1))):
            ingest(context, touch)
        planned = schedule(context, LINE_SERVICES[service], Wish(cancellable=is_cancellable))
        assert isinstance(planned, Scheduled)
        plans.append(planned.instant)

    run.enters("preparer", prepare)
    run.scheduler.run()
    files = tuple((entry.path, run.storage.read(entry.path)) for entry in run.storage.walk(""))
    return files, plans[0]


class _Stage:
    """A storage, and the actors that come to it."""

    def __init__(self, storage: MemoryStorage, scheduler: Scheduler, lock: LockKind) -> None:
        self.storage = storage
        self.scheduler = scheduler
        self.place = Place(lock)
        self.watch: Callable[[str, str], None] = lambda operation, path: None
        self.lie: Lie | None = None
        self._deaths_are_seen = scheduler.chance.random() < 0.5

    def enters(self, name: str, work: Callable[[Context], object], *, late_by: int = 0) -> Actor:
        """One more process, which begins after so many steps."""
        actor = self.scheduler.join(name, lambda: work(context))
        actor.paused_until = late_by
        actor.resumes_ms = self.scheduler.clock.now_ms() + PAUSE_MAX_MS
        own = staged(self.storage, self.scheduler, actor, lambda o, p: self.watch(o, p))
        if self.lie is not None:
            own = self.lie(own)
        scheduler, seen = self.scheduler, self._deaths_are_seen
        ports = Ports(
            clock=ActorClock(scheduler, actor),
            ids=SeededIds(scheduler.chance.getrandbits(32)),
            executor=LocalExecutor(1),
            background=ActorBackground(scheduler, actor),
            processes=SimulatedProcesses(scheduler, actor.number, are_seen=seen),
        )
        lock = TableLock(
            lambda: SimulatedLock(self.place, scheduler, actor), Patience(3_000, 60), ports
        )
        context = Context(own, lock, ports, SETTINGS)
        return actor


def groups_of(drafted: Drafted) -> frozenset[SliceKey]:
    return drafted.groups if isinstance(drafted, Draft) else frozenset()


def _new_group(context: Context) -> SliceKey:
    return SliceKey("p=b", f"n{context.ports.ids.fresh()[:8]}")


class Run:
    """One run of a scenario with a seed."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.scenario = scenario
        files, self.plan = _prepared(scenario.service, scenario.is_cancellable)
        self.scheduler = Scheduler(f"{scenario.name} {seed}", scenario.chances)
        storage = fresh_memory_storage(clock=self.scheduler.clock)
        self._stage = _Stage(storage, self.scheduler, scenario.lock)
        self._stage.lie = scenario.lie
        for path, content in files:
            storage.put(path, content)
        promises = Promises(has_lock=scenario.lock is LockKind.KEPT)
        self.watch = Watch(storage, load_config(storage).layout, promises)
        self._stage.watch = self.watch
        # Instants whose write was told that it had failed, for certain.
        self._failed: list[str] = []

    @property
    def chance(self) -> Random:
        return self.scheduler.chance

    @property
    def trace(self) -> list[Step]:
        return self.scheduler.trace

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
        return self.scheduler.counts

    def _enters(self, name: str, work: Callable[[Context], object], late_by: int) -> None:
        self._stage.enters(name, work, late_by=late_by)

    # What each of them does.

    def _executes(self, context: Context) -> object:
        service = LINE_SERVICES[self.scenario.service]
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
            self._again(context, lambda: (settle(context), sweep(context)))
            context.ports.clock.sleep(self.chance.choice((1, 60, 200)))
        return None

    def _writes(self, context: Context) -> object:
        chance = self.chance
        touch = Touch(
            tuple(chance.sample(range(3), chance.randrange(1, 3))),
            as_logs=chance.random() < 0.6,
            new=_new_group(context) if chance.random() < 0.3 else None,
        )
        return self._again(context, lambda: self._write(context, touch))

    def _write(self, context: Context, touch: Touch) -> Receipt:
        receipt = ingest(context, touch)
        self.watch.told_committed(receipt.instant)
        for plan in receipt.pre_empted:
            self.watch.told_cancelled(plan)
        return receipt

    def _plans(self, context: Context) -> object:
        """Another plan, by any service, which may want the same file groups."""
        service = LINE_SERVICES[self.chance.choice(tuple(Service))]
        planned = self._again(context, lambda: schedule(context, service, Wish()))
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
            settle(context)
            sweep(context)
        for plan in look(context).timeline.active.pending(TABLE_SERVICES):
            service = Service.of(plan.action)
            assert service is not None
            try:
                execute(context, LINE_SERVICES[service], plan.requested)
            except LakewardenError:
                cancel(context, plan.requested, "nobody can carry it out", force=True)
        for _ in range(2):
            self.scheduler.advance(SWEPT_AFTER_MS)
            settle(context)
            sweep(context)
        self._assert_nothing_forgotten(context)

    def _assert_nothing_forgotten(self, context: Context) -> None:
        """A plan for what has changed, was left out or handed back takes what any plan would."""
        moment = look(context)
        everything = replace(context, settings=EVERYTHING)
        service = LINE_SERVICES[self.scenario.service]
        full = groups_of(service.draft(everything, moment, Wish()))
        missed = full - groups_of(service.draft(context, moment, Wish()))
        if missed:
            raise Violation(f"The next {service.service} forgets {sorted(missed)}.")
