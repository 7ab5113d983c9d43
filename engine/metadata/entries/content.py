"""Content: what a change on the data table means to each partition of the metadata table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.encoding.entries import Entries
from lakewarden.engine.metadata.entries.changes import TableChange
from lakewarden.engine.metadata.entries.files_entries import files_entries
from lakewarden.engine.metadata.entries.record_index_entries import record_entries
from lakewarden.engine.metadata.entries.row_index_entries import (
    expression_statistics_entries,
    filter_entries,
    secondary_entries,
)
from lakewarden.engine.metadata.entries.statistics_entries import (
    column_stats_entries,
    partition_stats_entries,
)
from lakewarden.engine.metadata.reading.definitions import (
    READY,
    IndexDefinition,
    index_name,
    undefined,
)
from lakewarden.engine.metadata.reading.partition import MetadataPartition
from lakewarden.engine.metadata.reading.shards import shard_of
from lakewarden.engine.metadata.reading.table import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_INDEX_PREFIX,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
    MetadataTable,
)
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.instants.instant import epoch_ms

# Shard -> entries.
ShardEntries = Mapping[str, Entries]

# The version of definitions from before statistics had value types.
_EARLY_VERSION = "V1"


@dataclass(frozen=True, slots=True)
class ChangeContent:
    """One change, seen by the partitions of one table."""

    state: MetadataTable = field(repr=False)
    change: TableChange
    # Those that statistics are kept of.
    columns: tuple[str, ...]
    has_early_statistics: bool
    has_partitioned_record_index: bool
    # Of all partitions that have one.
    definitions: Mapping[str, IndexDefinition] = field(default_factory=dict)

    def of(self, partition: str) -> ShardEntries:
        """The entries of a partition."""
        match partition:
            case "files":
                return {shard_of(FILES): files_entries(self.change)}
            case "column_stats":
                return {shard_of(COLUMN_STATS): self._column_stats()}
            case "partition_stats":
                return {shard_of(PARTITION_STATS): self._partition_stats()}
            case "bloom_filters":
                entries = filter_entries(self.change, lambda file: file.key_filter)
                return {shard_of(BLOOM_FILTERS): entries}
            case "record_index":
                return self._record_index()
        definition = self.definitions.get(partition) or undefined(partition, READY)
        if partition.startswith(SECONDARY_INDEX_PREFIX):
            return {shard_of(partition): secondary_entries(self.change.valued, definition)}
        if partition.startswith(EXPRESSION_INDEX_PREFIX):
            return {shard_of(partition): self._expression(definition)}
        raise unmaintained(self.state.root, partition)

    def _expression(self, definition: IndexDefinition) -> Entries:
        partition = definition.partition
        if definition.index_type.lower() == BLOOM_FILTERS:
            return filter_entries(self.change, lambda file: file.expression_filters.get(partition))
        # Without partitions there is nothing to say of them.
        is_partitioned = self.state.config.is_partitioned
        return expression_statistics_entries(
            self.change if is_partitioned else replace(self.change, live_files={}),
            definition,
            lambda: self.state.partition(partition),
            is_early=definition.version == _EARLY_VERSION,
        )

    def _column_stats(self) -> Entries:
        return column_stats_entries(self.change, self.columns, is_early=self.has_early_statistics)

    def _partition_stats(self) -> Entries:
        return partition_stats_entries(
            self.change,
            self.columns,
            self._known_statistics,
            is_early=self.has_early_statistics,
        )

    def _known_statistics(self) -> MetadataPartition:
        return self.state.partition(COLUMN_STATS)

    def _record_index(self) -> ShardEntries:
        return record_entries(
            self.change.located,
            self.change.removed,
            self._moment_ms,
            is_partitioned=self.has_partitioned_record_index,
        )

    def _moment_ms(self, instant: str | None) -> int:
        moment_ms = epoch_ms(instant or self.change.instant, self.state.config.layout.zone)
        assert moment_ms is not None
        return moment_ms


def content_of(
    state: MetadataTable, definitions: Iterable[IndexDefinition], change: TableChange
) -> ChangeContent:
    """A change together with what the table's index definitions say."""
    defined = {one.partition: one for one in definitions}
    statistics, index = defined.get(COLUMN_STATS), defined.get(RECORD_INDEX)
    columns = statistics.columns if statistics else ()
    return ChangeContent(
        state=state,
        change=change,
        columns=columns,
        has_early_statistics=bool(columns)
        and statistics is not None
        and statistics.version == _EARLY_VERSION,
        has_partitioned_record_index=index is not None and index.is_partitioned,
        definitions=defined,
    )


def unmaintained(storage: Storage, partition: str) -> InvalidRequest:
    """The error for an index that cannot be kept true."""
    name = index_name(partition)
    return InvalidRequest(
        "unsupported_index",
        what=f"Lakewarden cannot maintain the table's index {name!r} ({partition}) yet.",
        why=(
            "A write that does not update an index makes it wrong, and readers that use it "
            "lose rows."
        ),
        now=f"Drop it first: CALL drop_index(index_name => '{name}',"
        f" path => '{storage.location.uri}').",
        partition=partition,
        index=name,
    )
