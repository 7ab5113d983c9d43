"""Victims: operations on a table in memory that die at one storage call, and what is left then.

Every run has its own clock, ids and storage, so that one printed line, the name of the operation
and the fault plan, replays it.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Self, TypeVar, cast

from lakewarden import Table
from lakewarden.engine.file_groups.file_names import parse_file_name
from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.ids import SeededIds
from lakewarden.engine.run.executor import LocalExecutor, ManualBackground
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.testing.fault_plan import FaultPlan, crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from tests.sampling import sample
from tests.writing.model import ModelRow, Write, contents_of
from tests.writing.shapes import Shape, carry_out

DEAD_AFTER_MS = 10 * 60 * 1000
SWEPT_AFTER_MS = 2 * 60 * 60 * 1000


def ports(clock: ManualClock, seed: int) -> Ports:
    return Ports(
        clock=clock,
        ids=SeededIds(seed),
        executor=LocalExecutor(1),
        background=ManualBackground(),
    )


@dataclass(frozen=True)
class CrashedTable:
    """A table in memory and its clock."""

    clock: ManualClock
    storage: MemoryStorage

    def table(self, seed: int, storage: Storage | None = None) -> Table:
        return Table.on(storage or self.storage, ports(self.clock, seed))

    def copy(self) -> Self:
        """The same table once more, at the same time."""
        clock = ManualClock(self.clock.now_ms())
        storage = fresh_memory_storage(clock=clock)
        for entry in self.storage.walk(""):
            storage.put(entry.path, self.storage.read(entry.path))
        return type(self)(clock, storage)

    def twin(self) -> Self:
        """The same table once more: with the times of its files, and of its clock."""
        now_ms, elapsed_ms = self.clock.now_ms(), round(self.clock.elapsed_seconds() * 1000)
        clock = ManualClock(now_ms - elapsed_ms)
        storage = fresh_memory_storage(clock=clock)
        for entry in sorted(self.storage.walk(""), key=lambda one: one.modified_ms):
            clock.advance(entry.modified_ms - clock.now_ms())
            storage.put(entry.path, self.storage.read(entry.path))
        clock.advance(now_ms - clock.now_ms())
        return type(self)(clock, storage)

    def rows(self, *, use_metadata: bool = True) -> list[ModelRow]:
        return contents_of(self.table(99).read_arrow(use_metadata=use_metadata))

    def strays(self) -> set[str]:
        """Data files that belong to no completed instant, or that the metadata table omits."""
        active = self.table(98).timeline()
        completed = {instant.requested for instant in active.completed()}
        found = set()
        for entry in self.storage.walk(""):
            file = parse_file_name(entry.name, entry.size_bytes)
            is_outside = entry.path.startswith(".hoodie/")
            if file is not None and not is_outside and file.instant not in completed:
                found.add(entry.path)
        return found

    def differences_of_listings(self) -> set[tuple[str, str]]:
        """Files that only the metadata table, or only the storage, knows."""
        table = self.table(97)
        listed = {
            (partition, file.name)
            for partition, files in StorageListing(self.storage).files().items()
            for file in files
        }
        known = {
            (slice_.partition, file.name)
            for slice_ in table.file_slices()
            for file in (slice_.base_file, *slice_.log_files)
            if file is not None
        }
        return known - listed


def new_world(shape: Shape, history: tuple[Write, ...]) -> CrashedTable:
    """A table that has seen some writes; each history is written once."""
    return remembered(f"{shape} {history}", lambda: _written(shape, history)).twin()


# The last worlds that were written, by what was written to them.
_WORLDS: dict[str, CrashedTable] = {}
WORLDS_MAX = 64
WorldT = TypeVar("WorldT", bound=CrashedTable)


def remembered(key: str, write: Callable[[], WorldT]) -> WorldT:
    """A world that nobody changes; it is to be copied."""
    if key not in _WORLDS:
        while len(_WORLDS) >= WORLDS_MAX:
            del _WORLDS[next(iter(_WORLDS))]
        _WORLDS[key] = write()
    return cast(WorldT, _WORLDS[key])


def _written(shape: Shape, history: tuple[Write, ...]) -> CrashedTable:
    clock = ManualClock()
    storage = fresh_memory_storage(clock=clock)
    world = CrashedTable(clock, storage)
    shape.create("", storage=storage, ports=ports(clock, 1))
    for number, write in enumerate(history, start=2):
        clock.advance(1000)
        carry_out(world.table(number), write)
    clock.advance(1000)
    return world


@dataclass(frozen=True)
class Death:
    """An operation that died, and the table it left."""

    plan: FaultPlan
    world: CrashedTable

    def __str__(self) -> str:
        return f"replay with plan {str(self.plan)!r}"


def deaths(
    before: CrashedTable, operation: Callable[[Table], object], *, every: int = 1
) -> Mapping[FaultPlan, Death]:
    """The operation killed at every storage call: before it, after it, and in the middle."""
    return killed(before, lambda world, stage: operation(world.table(50, stage)), every=every)


def creation_deaths(shape: Shape, *, every: int = 1) -> Mapping[FaultPlan, Death]:
    """The creation of a table killed at every storage call."""
    clock = ManualClock()
    before = CrashedTable(clock, fresh_memory_storage(clock=clock))
    return killed(
        before,
        lambda world, stage: shape.create("", storage=stage, ports=ports(world.clock, 50)),
        every=every,
    )


def killed(
    before: CrashedTable,
    operation: Callable[[CrashedTable, FaultyStorage], object],
    *,
    every: int = 1,
) -> Mapping[FaultPlan, Death]:
    """An operation killed at every storage call, or at a sample of one in so many of its deaths."""
    rehearsal = before.copy()
    faulty = FaultyStorage(rehearsal.storage, FaultPlan(), rehearsal.clock)
    operation(rehearsal, faulty)
    found = {}
    for plan in sample(list(crash_plans(faulty.calls)), every):
        world = before.copy()
        with suppress(Crashed):
            operation(world, FaultyStorage(world.storage, plan, world.clock))
        found[plan] = Death(plan, world)
    return found
