"""Content: what a change on the data table means to each partition of the metadata table.

Entries of the `files` partition: which files came into being, and which are gone.

Folding: what a base file and the log blocks on top of it amount to, as entries.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.avro.schema import written_schema
from lakewarden.engine.formats.hashing import NO_PARTITION_NAME, expression_partition_key
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.encoding.records import (
    ALL_PARTITIONS,
    EMPTY_BINARY,
    FILES_OF_PARTITION,
    RECORD_SCHEMA_TEXT,
    Entries,
    Run,
    decode_runs,
    encode_values,
    last_of_each,
)
from lakewarden.engine.metadata.entries.changes import TableChange
from lakewarden.engine.metadata.entries.row_index_entries import (
    expression_statistics_entries,
    filter_entries,
    of_expression,
    record_entries,
    secondary_entries,
)
from lakewarden.engine.metadata.entries.statistics import KnownFiles, PartitionMemory
from lakewarden.engine.metadata.entries.statistics_entries import (
    column_stats_entries,
    partition_stats_entries,
    wider_partition_entries,
)
from lakewarden.engine.metadata.reading.bloom_filters import BLOOM_COLUMN
from lakewarden.engine.metadata.reading.column_stats import STATS_COLUMN
from lakewarden.engine.metadata.reading.definitions import (
    READY,
    IndexDefinition,
    index_name,
    undefined,
)
from lakewarden.engine.metadata.reading.files import (
    ALL_PARTITIONS_KEY,
    FILES_COLUMN,
    merged_changes,
    merged_sizes,
)
from lakewarden.engine.metadata.reading.partition import MetadataPartition
from lakewarden.engine.metadata.reading.record_index import RECORD_COLUMN
from lakewarden.engine.metadata.reading.secondary_index import SECONDARY_COLUMN
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
from lakewarden.engine.timeline.instants.instant import Action, epoch_ms

# Name -> size; None stands for a file or a partition that is gone.
Sizes = Mapping[str, int | None]


def files_entries(change: TableChange) -> Entries:
    """What a change says about files."""
    by_partition = _sizes(change)
    listed: dict[str, Sizes] = {
        _name(partition): by_partition[partition] for partition in sorted(by_partition)
    }
    if change.new_files or change.deleted_partitions or not change.deleted_files:
        # Java names the touched partitions in every commit, known or not.
        listed = {ALL_PARTITIONS_KEY: _partitions(change), **listed}
    gone = [_name(partition) for partition in sorted(change.deleted_partitions)]
    return files_listing(listed, gone)


def files_listing(listed: Mapping[str, Sizes], gone: list[str]) -> Entries:
    """Entries that say of each key which names it has or has lost; keys that are gone go."""
    types = [ALL_PARTITIONS if key == ALL_PARTITIONS_KEY else FILES_OF_PARTITION for key in listed]
    values = encode_values(np.array(types), FILES_COLUMN, _maps(list(listed.values())))
    return Entries.of(list(listed), values, gone)


def _sizes(change: TableChange) -> dict[str, dict[str, int | None]]:
    found: dict[str, dict[str, int | None]] = {}
    for partition, names in change.deleted_files.items():
        found.setdefault(partition, {}).update(dict.fromkeys(names))
    for file in change.new_files:
        found.setdefault(file.partition, {})[file.name] = file.size_bytes
    return {
        partition: sizes
        for partition, sizes in found.items()
        if sizes and partition not in change.deleted_partitions
    }


def _partitions(change: TableChange) -> Sizes:
    named: dict[str, int | None] = {_name(file.partition): 0 for file in change.new_files}
    named |= dict.fromkeys(map(_name, change.deleted_partitions))
    return named


def _name(partition: str) -> str:
    return partition or NO_PARTITION_NAME


def _maps(maps: list[Sizes]) -> pa.MapArray:
    """One map for each key, from a name to its size and whether it is gone."""
    ends = np.cumsum([0, *(len(sizes) for sizes in maps)])
    names = [name for sizes in maps for name in sorted(sizes)]
    sizes_in_order = [sizes[name] for sizes in maps for name in sorted(sizes)]
    items = pa.StructArray.from_arrays(
        [
            pa.array([size or 0 for size in sizes_in_order], pa.int64()),
            pa.array([size is None for size in sizes_in_order], pa.bool_()),
        ],
        names=["size", "isDeleted"],
    )
    return pa.MapArray.from_arrays(pa.array(ends, pa.int32()), pa.array(names, pa.string()), items)


# Shard -> entries.
ShardEntries = Mapping[str, Entries]

# What may change what is said of files that stay.
_MAKES_STATISTICS = frozenset({Action.INDEXING, Action.RESTORE})
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
    memory: PartitionMemory = field(default_factory=PartitionMemory, repr=False)

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

    def wider_of(self, partition: str) -> ShardEntries:
        """What it says of the table's partitions, wide enough for what is said of them so far."""
        said = partial(self.state.partition, partition)
        if partition == PARTITION_STATS:
            entries = wider_partition_entries(
                self.change,
                self.columns,
                KnownFiles(self._column_statistics),
                said,
                is_early=self.has_early_statistics,
            )
        elif self.has_partitions(partition):
            definition = self.definitions[partition]
            entries = wider_partition_entries(
                of_expression(self.change, definition),
                definition.columns,
                KnownFiles(said),
                said,
                is_early=definition.version == _EARLY_VERSION,
                key_of=expression_partition_key,
            )
        else:
            return {}
        return {shard_of(partition): entries}

    def has_partitions(self, partition: str) -> bool:
        """Whether an expression index has statistics of the table's partitions."""
        definition = self.definitions.get(partition)
        return (
            definition is not None
            and partition.startswith(EXPRESSION_INDEX_PREFIX)
            and definition.index_type.lower() != BLOOM_FILTERS
            and self.state.config.is_partitioned
        )

    def _expression(self, definition: IndexDefinition) -> Entries:
        partition = definition.partition
        if definition.index_type.lower() == BLOOM_FILTERS:
            return filter_entries(self.change, lambda file: file.expression_filters.get(partition))
        # Without partitions there is nothing to say of them.
        has_partitions = self.has_partitions(partition)
        return expression_statistics_entries(
            self.change if has_partitions else replace(self.change, live_files={}),
            definition,
            KnownFiles(partial(self.state.partition, partition)),
            is_early=definition.version == _EARLY_VERSION,
        )

    def _column_stats(self) -> Entries:
        return column_stats_entries(self.change, self.columns, is_early=self.has_early_statistics)

    def _partition_stats(self) -> Entries:
        return partition_stats_entries(
            self.change,
            self.columns,
            KnownFiles(self._column_statistics, self.memory, self._is_continued),
            is_early=self.has_early_statistics,
        )

    def _column_statistics(self) -> MetadataPartition:
        return self.state.partition(COLUMN_STATS)

    def _is_continued(self, instant: str) -> bool:
        """Whether a write has completed, and nothing has made statistics of older files since."""
        active = self.state.data_timeline.active
        done = next((one for one in active.completed() if one.requested == instant), None)
        # A metadata table that was made anew since does not have its deltacommit.
        if done is None or self.state.deltacommit(instant) is None:
            return False
        return not any(
            one.completed is None or one.completed > (done.completed or "")
            for one in active.instants
            if one.action in _MAKES_STATISTICS
        )

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
    state: MetadataTable,
    definitions: Iterable[IndexDefinition],
    change: TableChange,
    memory: PartitionMemory | None = None,
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
        memory=memory or PartitionMemory(),
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


# What records hold, each one of these; their type says no more than that.
_CONTENTS = (STATS_COLUMN, BLOOM_COLUMN, RECORD_COLUMN, SECONDARY_COLUMN)
_TYPE = "type"
# Fields that were added to records since release 1.0.
_ADDED_FIELDS = {
    STATS_COLUMN: {"valueType": pa.struct([("typeOrdinal", pa.int32())])},
    RECORD_COLUMN: {"position": pa.int64()},
}


def folded(partition: str, runs: Sequence[Run]) -> Entries:
    """The entries of one file group, sorted by key, from runs given oldest first."""
    if partition == FILES:
        merged = merged_sizes(decode_runs(runs, [FILES_COLUMN]))
        return files_listing({key: merged[key] for key in sorted(merged, key=str.encode)}, [])
    keys = pa.concat_arrays([EMPTY_BINARY, *(run.keys for run in runs)])
    values = pa.concat_arrays([EMPTY_BINARY, *map(_values, runs)])
    is_removed = np.concatenate(
        [np.zeros(0, np.bool_), *(np.full(len(run.keys), run.values is None) for run in runs)]
    )
    kept = last_of_each(keys)
    kept = kept[~is_removed[kept]]
    return Entries(keys.take(pa.array(kept)), values, kept, EMPTY_BINARY)


def folded_logs(partition: str, runs: Sequence[Run]) -> Entries:
    """What the logs of a file group amount to among themselves, sorted by key.

    The base file is to be met later, so keys that were removed are removed still, before those with
    values count.
    """
    if partition == FILES:
        changes, wiped = merged_changes(decode_runs(runs, [FILES_COLUMN]))
        listed = {key: changes[key] for key in sorted(changes, key=str.encode)}
        return files_listing(listed, sorted(wiped, key=str.encode))
    entries = folded(partition, runs)
    removed = pa.concat_arrays(
        [EMPTY_BINARY, *(run.keys for run in runs if run.values is None)]
    ).unique()
    return replace(
        entries, removed=removed.filter(pc.invert(pc.is_in(removed, value_set=entries.keys)))
    )


def _values(run: Run) -> pa.LargeBinaryArray:
    """The values of a run in the schema of today; nothing for each removed key."""
    if run.values is None:
        return pa.array([b""] * len(run.keys), pa.large_binary())
    if not len(run.keys) or written_schema(run.schema_text) == RECORD_SCHEMA_TEXT:
        return run.values
    found = decode_runs([run], [_TYPE, *_CONTENTS]).values
    # A file group has records of one content, of which an expression index has two types.
    column = next(name for name in _CONTENTS if found.column(name).null_count < len(found))
    content = found.column(column).combine_chunks()
    types = found.column(_TYPE).to_numpy()
    return encode_values(types, column, _with_added_fields(content, column))


def _with_added_fields(content: pa.StructArray, column: str) -> pa.StructArray:
    fields = {field.name: content.field(field.name) for field in content.type}
    for name, type_ in _ADDED_FIELDS.get(column, {}).items():
        fields.setdefault(name, pa.nulls(len(content), type_))
    mask = pc.is_null(content)
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields), mask=mask)
