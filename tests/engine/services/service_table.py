"""A small world for tests of table services: a table in memory, its clock, its writers, its logs.

Every run has its own clock, ids and storage, so that it shows the same each time.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import kept_settings, load_config
from lakewarden.engine.transaction.state.context import Context, load_for_writing
from tests.crash.dying_operations import CrashedTable, ports, remembered
from tests.writing.model import Model, ModelRow, Write
from tests.writing.shapes import Shape, carry_out

# Storage calls one at a time, so that those of a run have one order.
ONE_AT_A_TIME = {"lakewarden.storage.threads": "1"}
MOR = Shape("mor")
COW = Shape("cow")
FLAT_MOR = Shape("mor", is_partitioned=False, is_event_time=False)


def row(key: str, ts: int = 1, partition: str = "a", name: str | None = None) -> ModelRow:
    """One row; its values tell key and ordering value, so that each version looks different."""
    text = f"{key} at {ts}" if name is None else name
    return {"id": key, "p": partition, "ts": ts, "v": ts / 2, "name": text}


def rows(keys: Iterable[str], ts: int = 1, partition: str = "a") -> tuple[ModelRow, ...]:
    return tuple(row(key, ts, partition) for key in keys)


def inserted(count: int = 6, *, partitions: str = "ab") -> Write:
    """The first write of most tests: keys k0, k1 ... spread over some partitions."""
    places = len(partitions)
    return Write("upsert", tuple(row(f"k{n}", 1, partitions[n % places]) for n in range(count)))


def updated(count: int = 6, ts: int = 2, *, partitions: str = "ab") -> Write:
    """New versions of the rows of `inserted`; on merge-on-read tables they go to logs."""
    places = len(partitions)
    return Write("upsert", tuple(row(f"k{n}", ts, partitions[n % places]) for n in range(count)))


@dataclass(frozen=True)
class ServiceWorld(CrashedTable):
    """A table in memory and its clock; every caller names himself by a seed of his own."""

    def context(
        self, seed: int = 50, storage: Storage | None = None, **arguments: object
    ) -> Context:
        """What an operation needs; settings are given as keywords, with `__` for each dot."""
        storage = storage or self.storage
        own = ports(self.clock, seed)
        given = {name.replace("__", "."): value for name, value in arguments.items()}
        kept = kept_settings(load_config(storage).properties)
        settings = Settings.of(arguments={**ONE_AT_A_TIME, **given}, table=kept)
        return Context(storage, open_lock(storage, settings, own), own, settings)

    def snapshot(self) -> Snapshot:
        return load_for_writing(self.context(49))

    def write(self, *writes: Write) -> None:
        """Carry out writes, each at a later time than the one before."""
        for write in writes:
            self.clock.advance(1000)
            carry_out(self.table(int(self.clock.elapsed_seconds())), write)
        self.clock.advance(1000)

    def slices(self) -> tuple[FileSlice, ...]:
        """The slices that a snapshot query reads."""
        return self.table(98).file_slices()

    def logs(self) -> int:
        """How many log files readers have to merge."""
        return sum(len(slice_.log_files) for slice_ in self.slices())


def new_service_world(shape: Shape = MOR, *history: Write) -> ServiceWorld:
    """A table of a shape that has seen some writes; each history is written once."""
    return remembered(f"for services: {shape} {history}", lambda: _written(shape, history)).twin()


def _written(shape: Shape, history: tuple[Write, ...]) -> ServiceWorld:
    clock = ManualClock()
    world = ServiceWorld(clock, fresh_memory_storage(clock=clock))
    shape.create("", storage=world.storage, ports=ports(clock, 1))
    world.write(*history)
    return world


def contents(shape: Shape, *writes: Write) -> list[ModelRow]:
    """What a table of that shape has to hold after some writes."""
    model: Model = shape.model()
    for write in writes:
        model.apply(write)
    return model.contents()
