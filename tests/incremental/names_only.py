"""Tables of any number of partitions of which only the names of files exist, and some logs.

The metadata table knows of them, and planning must not look for the files themselves; but a log
compaction looks into the logs that it may take.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakewarden import Table
from lakewarden.engine.conflicts.conflicts import ObservedInstants
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, Operation, WriteStat
from lakewarden.engine.formats.instant_metadata.replace import ReplaceCommitMetadata
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.metadata.entries.changes import NewFile, TableChange
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.log_compaction.service import LOG_COMPACTION
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, TableService, schedule
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.table.schema import SCHEMA_KEY
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.attempts.publish import publish, to_inflight
from lakewarden.engine.transaction.commit import Outcome, commit
from lakewarden.engine.transaction.start import start
from tests.crash.dying_operations import ports
from tests.engine.services.service_table import ServiceWorld
from tests.incremental.planning_table import SCHEMA, log_of

TOUCHED = range(12)
PLANNED = range(6)
SIZE = 10
LARGE = 1000
SETTINGS: dict[TableService, Mapping[str, str]] = {
    COMPACTION: {},
    CLUSTERING: {"hoodie__clustering__plan__strategy__small__file__limit": str(LARGE)},
    LOG_COMPACTION: {"hoodie__log__compaction__blocks__threshold": "2"},
}


@dataclass(frozen=True)
class Names:
    """A table of which only the names of files exist."""

    world: ServiceWorld

    def write(self, partitions: Iterable[int], *, logs: bool = False, size: int = SIZE) -> None:
        """A base file or a log for one file group of each of some partitions."""
        self.world.clock.advance(1000)
        context = self.world.context()
        attempt = publish(context, Action.DELTA_COMMIT, claims=True).attempt
        assert attempt is not None
        to_inflight(context, attempt)
        files = [
            self._log(number, attempt.instant) if logs else _base(number, attempt.instant, size)
            for number in partitions
        ]
        keys = frozenset(FileGroupId(file.partition, _file_id(file)) for file in files)
        outcome = Outcome(
            metadata=CommitMetadata(
                partition_to_write_stats=_stats(files), extra_metadata={SCHEMA_KEY: SCHEMA}
            ),
            change=TableChange(instant=attempt.instant, new_files=tuple(files)),
            touched=keys,
            appended=keys if logs else frozenset(),
            seen=ObservedInstants.of(self.world.snapshot().timeline.active),
            outputs={},
        )
        with attempt:
            commit(context, attempt, outcome)

    def plan_and_complete(self, service: TableService) -> None:
        """A plan for some of what there is, carried out."""
        self.world.clock.advance(1000)
        context = self.world.context(**SETTINGS[service])
        planned = schedule(context, service, PlanRequest(max_file_groups=len(PLANNED)))
        assert isinstance(planned, Scheduled)
        attempt = start(context, planned.instant).attempt
        assert attempt is not None
        numbers = [int(key.partition.removeprefix("p=")) for key in planned.draft.groups]
        if service is LOG_COMPACTION:
            files = [self._log(number, attempt.instant) for number in sorted(numbers)]
        else:
            files = [_base(number, attempt.instant, LARGE) for number in sorted(numbers)]
        metadata = _done(service, _stats(files))
        outcome = Outcome(
            metadata=metadata,
            change=TableChange(instant=attempt.instant, new_files=tuple(files)),
            touched=planned.draft.groups,
            outputs={},
        )
        with attempt:
            commit(context, attempt, outcome)

    def _log(self, number: int, instant: str) -> NewFile:
        """A log that is there."""
        content = log_of(instant, SIZE)
        file = NewFile(partition_of(number), f".f{number}_{instant}.log.1_0-0-1", len(content))
        self.world.storage.put(f"{file.partition}/{file.name}", content)
        return file


def partition_of(number: int) -> str:
    return f"p={number:05d}"


def _base(number: int, instant: str, size: int) -> NewFile:
    return NewFile(partition_of(number), f"f{number}_0-0-1_{instant}.parquet", size)


def _done(service: TableService, stats: dict[str, tuple[WriteStat, ...]]) -> CommitMetadata:
    """What a plan of the service says when it has completed."""
    if service is CLUSTERING:
        return ReplaceCommitMetadata(
            partition_to_write_stats=stats, operation_type=Operation.CLUSTER
        )
    operation = Operation.COMPACT if service is COMPACTION else Operation.LOG_COMPACT
    return CommitMetadata(partition_to_write_stats=stats, compacted=True, operation_type=operation)


def _file_id(file: NewFile) -> str:
    return file.name.removeprefix(".").partition("_")[0]


def _stats(files: Iterable[NewFile]) -> dict[str, tuple[WriteStat, ...]]:
    return {
        file.partition: (
            WriteStat(
                file_id=_file_id(file),
                path=f"{file.partition}/{file.name}",
                partition_path=file.partition,
                log_files=(file.name,) if file.name.startswith(".") else None,
            ),
        )
        for file in files
    }


def empty_table() -> ServiceWorld:
    """A table whose rows nobody will read."""
    clock = ManualClock()
    world = ServiceWorld(clock, fresh_memory_storage(clock=clock))
    Table.create(
        "",
        pa.schema([("k", pa.string()), ("p", pa.string())]),
        key=["k"],
        partition=["p"],
        type="mor",
        properties={"hoodie.metadata.index.column.stats.enable": "false"},
        storage=world.storage,
        ports=ports(clock, 1),
    )
    return world


def touched_table(service: TableService, partitions: int) -> ServiceWorld:
    """A table in which a plan has completed, and where twelve partitions have work for the next.

    Half of them were skipped by that plan, and half were written to since.
    """
    world = empty_table()
    table = Names(world)
    logs = service is not CLUSTERING
    table.write(range(partitions), size=LARGE)
    table.write(TOUCHED, logs=logs)
    table.write(TOUCHED, logs=logs)
    table.plan_and_complete(service)
    table.write(PLANNED, logs=logs)
    return world
