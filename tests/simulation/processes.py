"""The company: processes that meet at one storage, made of a scheduler's actors and of ports."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property

from lakewarden.engine.kernel.ids import SeededIds
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import Patience, TableLock
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.run.processes import ProcessMark
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.memory import MemoryStorage
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.archived.reader import LsmArchive
from lakewarden.engine.transaction.state.context import Context
from tests.simulation.locks import LockKind, Place, SimulatedLock
from tests.simulation.scheduler import PAUSE_MAX_MS, Actor, ActorBackground, ActorClock, Scheduler
from tests.simulation.simulated_storage import staged


def let_all_read_at_once() -> None:
    """In Python 3.11 a cached property has one lock for the instances of all threads.

    Here one thread runs at a time, and one that waits for its turn must not keep that lock.
    """
    for kind in (Snapshot, LsmArchive):
        for attribute in vars(kind).values():
            if isinstance(attribute, cached_property) and hasattr(attribute, "lock"):
                attribute.lock = nullcontext()


let_all_read_at_once()


# What the storage tells the actors instead of the truth.
Lie = Callable[[Storage], Storage]


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


class Company:
    """The processes that meet at one storage, each with its own view of it."""

    def __init__(
        self, storage: MemoryStorage, scheduler: Scheduler, lock: LockKind, settings: Settings
    ) -> None:
        self.storage = storage
        self.scheduler = scheduler
        self.place = Place(lock)
        self.settings = settings
        self.watch: Callable[[str, str], None] = lambda operation, path: None
        self.lie: Lie | None = None
        self._deaths_are_seen = scheduler.chance.random() < 0.5

    def enters(
        self,
        name: str,
        work: Callable[[Context], object],
        *,
        late_by: int = 0,
        skew_ms: int = 0,
    ) -> Actor:
        """One more process, which begins after so many steps; its clock is ahead by the skew."""
        actor = self.scheduler.join(name, lambda: work(context))
        actor.paused_until = late_by
        actor.resumes_ms = self.scheduler.clock.now_ms() + PAUSE_MAX_MS
        own = staged(self.storage, self.scheduler, actor, lambda o, p: self.watch(o, p))
        if self.lie is not None:
            own = self.lie(own)
        scheduler, seen = self.scheduler, self._deaths_are_seen
        ports = Ports(
            clock=ActorClock(scheduler, actor, skew_ms),
            ids=SeededIds(scheduler.chance.getrandbits(32)),
            executor=LocalExecutor(1),
            background=ActorBackground(scheduler, actor),
            processes=SimulatedProcesses(scheduler, actor.number, are_seen=seen),
        )
        lock = TableLock(
            lambda: SimulatedLock(self.place, scheduler, actor), Patience(3_000, 60), ports
        )
        context = Context(own, lock, ports, self.settings)
        return actor
