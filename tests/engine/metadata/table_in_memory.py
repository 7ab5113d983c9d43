"""A table in memory whose metadata table a test writes: data files are spoken of, never made."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lakewarden.engine.formats.avro.arrow_types import avro_schema
from lakewarden.engine.kernel.clock import UTC, ManualClock
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.metadata.building.create import BuildOptions, create_metadata_table
from lakewarden.engine.metadata.entries.changes import NewFile, TableChange
from lakewarden.engine.metadata.entries.statistics import PartitionMemory
from lakewarden.engine.metadata.entries.summaries import summaries_of_rows
from lakewarden.engine.metadata.reading.definitions import IndexDefinition, load_definitions
from lakewarden.engine.metadata.reading.table import MetadataTable
from lakewarden.engine.metadata.writing.writer import Reported, rollback_change, write_change
from lakewarden.engine.run.executor import LocalExecutor, ManualBackground
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableConfig, load_config
from lakewarden.engine.table.properties_file import write_properties
from lakewarden.engine.timeline.instants.instant import Action, Instant, State
from lakewarden.engine.timeline.next_time import TimeSource
from lakewarden.engine.timeline.timeline import Timeline
from lakewarden.engine.transaction.metadata_compaction import Compacted, compact_metadata
from lakewarden.engine.transaction.state.context import Context

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("v", pa.float64())])
COLUMNS = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key", "id", "n", "v")
ALL = ("files", "column_stats", "partition_stats", "record_index")


@dataclass
class TableInMemory:
    """The table, with a clock that moves on between one step and the next."""

    storage: Storage = field(default_factory=fresh_memory_storage)
    clock: ManualClock = field(default_factory=ManualClock)
    memory: PartitionMemory = field(default_factory=PartitionMemory)

    @property
    def config(self) -> TableConfig:
        return load_config(self.storage)

    @property
    def ports(self) -> Ports:
        background = ManualBackground()
        return Ports(clock=self.clock, executor=LocalExecutor(1), background=background)

    @property
    def timeline(self) -> Timeline:
        return Timeline.load(self.storage, self.config.layout)

    @property
    def times(self) -> TimeSource:
        self.clock.advance(1000)
        return TimeSource(self.clock, UTC, self.timeline.active.newest_time())

    @property
    def metadata(self) -> MetadataTable:
        return MetadataTable(self.storage, self.config, self.timeline)

    @property
    def definitions(self) -> tuple[IndexDefinition, ...]:
        return load_definitions(self.storage, self.config)

    def create(
        self,
        partitions: Sequence[str] = ALL,
        *,
        is_partitioned: bool = True,
        choices: BuildOptions | None = None,
    ) -> "TableInMemory":
        properties = {
            "hoodie.table.name": "orders",
            "hoodie.table.type": "MERGE_ON_READ",
            "hoodie.table.version": "9",
            "hoodie.table.recordkey.fields": "id",
            "hoodie.timeline.path": "timeline",
            "hoodie.timeline.layout.version": "2",
            "hoodie.table.timeline.timezone": "UTC",
            "hoodie.table.create.schema": avro_schema(SCHEMA, "orders_record", "hoodie.orders"),
        }
        if is_partitioned:
            properties["hoodie.table.partition.fields"] = "p"
        write_properties(self.storage, properties)
        return self.create_metadata(partitions, choices=choices)

    def create_metadata(
        self, partitions: Sequence[str], *, choices: BuildOptions | None = None
    ) -> "TableInMemory":
        create_metadata_table(
            self.storage, self.config, partitions, self.times, self.ports, choices=choices
        )
        return self

    def begin(self) -> str:
        """A new pending deltacommit of the table."""
        instant = self.times.next()
        self._put(Instant(instant, Action.DELTA_COMMIT, State.REQUESTED))
        self._put(Instant(instant, Action.DELTA_COMMIT, State.INFLIGHT))
        return instant

    def complete(self, instant: str, action: Action = Action.DELTA_COMMIT) -> None:
        completed = self.times.next()
        self._put(Instant(instant, action, State.COMPLETED, completed))

    @property
    def context(self) -> Context:
        return self.context_with(self.ports)

    def context_with(self, ports: Ports) -> Context:
        settings = Settings.of(arguments={"hoodie.write.lock.provider": "filesystem"})
        return Context(self.storage, open_lock(self.storage, settings, ports), ports, settings)

    def tell(self, change: TableChange) -> Reported:
        state, memory = self.metadata, self.memory
        return write_change(state, self.definitions, change, self.times, self.ports, memory=memory)

    def compact(
        self, ports: Ports | None = None, *, deltacommits_min: int | None = None
    ) -> Compacted | None:
        """Compact the metadata table, as after a commit that finds it time."""
        self.clock.advance(1000)
        context = self.context_with(ports or self.ports)
        return compact_metadata(context, deltacommits_min=deltacommits_min)

    def write(self, *files: NewFile, **what: object) -> str:
        """A whole write that made these files; the answer is its instant."""
        instant = self.begin()
        change = TableChange(instant=instant, new_files=files, **what)  # type: ignore[arg-type]
        reported = self.tell(change)
        self.complete(instant)
        if reported.has_plan:
            self.compact()
        return instant

    def roll_back(self, instant: str, rollback_instant: str) -> None:
        rollback_change(
            self.storage, self.config, instant, rollback_instant, self.times, self.ports
        )

    def take_back(self, instant: str) -> None:
        """Take a write off the timeline, as a rollback does in the end."""
        for file in self.timeline.active.files:
            if file.instant.requested == instant:
                for one in reversed(list(file)):
                    self.storage.delete(one.entry.path)

    def _put(self, instant: Instant) -> None:
        self.storage.put(self.config.layout.path(instant), b"")


def new_file(
    partition: str, name: str, ids: Sequence[str], values: Sequence[float | None]
) -> NewFile:
    """A file with rows of these ids and values."""
    count = len(ids)
    rows = pa.table(
        {
            "_hoodie_commit_time": ["1"] * count,
            "_hoodie_partition_path": [partition] * count,
            "_hoodie_record_key": list(ids),
            "id": list(ids),
            "n": pa.array(range(count), pa.int64()),
            "v": pa.array(values, pa.float64()),
        }
    )
    return NewFile(partition, name, 100 + count, summaries_of_rows(rows, COLUMNS))
