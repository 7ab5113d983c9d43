"""Runs on real tables: rows in Parquet files and Avro logs, the real services, real writes.

They cost ten times as much as those on lines, so there are fewer of them.
"""

from collections.abc import Iterator, Mapping
from itertools import product

from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.errors import LakewardenError, Unsettled
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.log_compaction.service import LOG_COMPACTION
from lakewarden.engine.services.planning.schedule import TableService
from lakewarden.engine.storage.memory import MemoryStorage
from lakewarden.engine.transaction.state.context import Context, Service
from lakewarden.engine.write import operations
from lakewarden.engine.write.writer import TableWriter
from lakewarden.table import Table
from tests.crash.dying_operations import ports
from tests.engine.services.service_table import inserted, row, updated
from tests.simulation.scenario import ARGUMENTS, Run, Scenario
from tests.simulation.scheduler import Violation
from tests.writing.model import ModelRow, Write, contents_of
from tests.writing.shapes import Shape

KEYS = 6
REAL_ARGUMENTS = {
    **ARGUMENTS,
    # Every insert makes a file group of its own, so that there is something to cluster.
    "hoodie.parquet.small.file.limit": "0",
    # A plan that takes a file alone would find work for ever, unless it passes over its own files.
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "false",
    "hoodie.log.compaction.blocks.threshold": "2",
}


class RealRun(Run):
    """One run on a real table; at the end its rows are those of the writes that were made."""

    arguments: Mapping[str, str] = {**REAL_ARGUMENTS, "hoodie.metadata.enable": "false"}
    services: Mapping[Service, TableService] = {
        Service.COMPACTION: COMPACTION,
        Service.LOG_COMPACTION: LOG_COMPACTION,
        Service.CLUSTERING: CLUSTERING,
    }
    has_lines = False
    shape = Shape("mor", has_metadata=False)

    def __init__(self, scenario: Scenario, seed: int) -> None:
        super().__init__(scenario, seed)
        # The writes of the run, with what is known of each: made, not made, or nothing.
        self._tries: list[tuple[Write, bool | None]] = []

    @classmethod
    def create(cls, storage: MemoryStorage) -> None:
        cls.shape.create("", storage=storage, ports=ports(ManualClock(), 1))

    @classmethod
    def fill(cls, context: Context, service: Service) -> None:
        for write in _history(service)[0]:
            _carry_out(context, write)

    @classmethod
    def fill_again(cls, context: Context, service: Service) -> None:
        for write in _history(service)[1]:
            _carry_out(context, write)

    def write(self, context: Context) -> tuple[str, tuple[str, ...]]:
        number = len(self._tries)
        keys = self.chance.sample(range(KEYS), 2)
        write = Write("upsert", tuple(row(f"k{k}", 10 + number, "ab"[k % 2]) for k in keys))
        # Whoever dies here has written, or has not.
        self._tries.append((write, None))
        try:
            instant = _carry_out(context, write)
        except Unsettled:
            raise
        except LakewardenError:
            self._tries[number] = (write, False)
            raise
        self._tries[number] = (write, True)
        return instant, ()

    def assert_rows(self) -> None:
        for use_metadata in (True, False):
            table = Table.on(self.storage, ports(self.scheduler.clock, 99))
            seen = contents_of(table.read_arrow(use_metadata=use_metadata))
            if seen not in list(self._possible()):
                raise Violation(f"The table holds {seen} after {self._tries}.")

    def _possible(self) -> Iterator[list[ModelRow]]:
        """What the table may hold, as nobody knows of some writes whether they were made."""
        choices = [(True, False) if made is None else (made,) for _, made in self._tries]
        for selection in product(*choices):
            model = self.shape.model()
            for write in (w for part in _history(self.scenario.service) for w in part):
                model.apply(write)
            for (write, _), is_made in zip(self._tries, selection, strict=True):
                if is_made:
                    model.apply(write)
            yield model.contents()


class RealRunWithMetadata(RealRun):
    """The same with a metadata table, whose commits are part of each step."""

    arguments = REAL_ARGUMENTS
    shape = Shape("mor", index="RECORD_INDEX")


def _carry_out(context: Context, write: Write) -> str:
    return TableWriter(context).write(operations.upsert(write.table())).instant


def _history(service: Service) -> tuple[tuple[Write, ...], tuple[Write, ...]]:
    """What is written before the first plan, and between it and the second one."""
    if service is Service.CLUSTERING:
        first, second = (
            tuple(
                Write("upsert", tuple(row(f"{letter}{n}{p}", 1, p) for n in range(2) for p in "ab"))
                for letter in letters
            )
            for letters in ("uv", "wx")
        )
        return (inserted(KEYS), *first), second
    return (
        (inserted(KEYS), updated(KEYS, 2), updated(KEYS, 3)),
        (updated(KEYS, 4), updated(KEYS, 5)),
    )
