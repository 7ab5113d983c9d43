"""Creating the metadata table, and adding partitions to it.

Which partitions of the metadata table were built after an instant, from the files of then.

A rollback takes a write's own deltacommit out of the metadata table. It cannot take the write out
of a partition's first content: a partition built after the write is untrue once that is undone.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from lakewarden.engine.file_groups.file_names import PARTITION_METADATA
from lakewarden.engine.formats.properties import parse_properties
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Setting, Settings
from lakewarden.engine.metadata.building.initialise import (
    NewShard,
    forget_unfinished,
    initialise_partition,
)
from lakewarden.engine.metadata.encoding.records import NO_ENTRIES, Entries
from lakewarden.engine.metadata.entries.changes import Located, TableChange
from lakewarden.engine.metadata.entries.content import content_of, files_listing, unmaintained
from lakewarden.engine.metadata.entries.summaries import COLUMN_SETTINGS, chosen_columns
from lakewarden.engine.metadata.reading.definitions import (
    definitions_of,
    definitions_path,
    load_definitions,
)
from lakewarden.engine.metadata.reading.files import ALL_PARTITIONS_KEY, MetadataListing
from lakewarden.engine.metadata.reading.shards import (
    GROUP_SETTINGS,
    GroupCounts,
    record_shard,
    shard_of,
)
from lakewarden.engine.metadata.reading.table import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_INDEX_PREFIX,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
    MetadataTable,
    load_metadata_table,
)
from lakewarden.engine.metadata.writing.builds import reserved_instants
from lakewarden.engine.metadata.writing.definitions_file import (
    NewDefinition,
    column_stats_definition,
    define_indexes,
    record_index_definition,
    remove_definitions,
)
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import METADATA_FOLDER, PROPERTIES_PATH, TableConfig
from lakewarden.engine.table.properties_file import update_properties, write_properties
from lakewarden.engine.table.schema import schema_from
from lakewarden.engine.table.versions import EARLY_INDEXES, index_version, refuse_metadata
from lakewarden.engine.timeline.next_time import TimeSource

_BEGAN_AT = "commitTime"


def built_after(state: MetadataTable, config: TableConfig, moment: str) -> tuple[str, ...]:
    """The partitions that may hold what was true at a moment, with those that are made from them.

    Without the list of files there is no metadata table, so that all partitions go with it.
    """
    listed = (*config.metadata_partitions, *config.metadata_partitions_inflight)
    found = {one for one in listed if _was_built_after(state, one, moment)}
    if FILES in found:
        return listed
    return tuple(one for one in listed if one in found or _is_made_from(one, found))


def _was_built_after(state: MetadataTable, partition: str, moment: str) -> bool:
    """By the instant that the partition says it began with; one of which nothing is known counts.

    That is the initialisation, or to Java the first write that came to the partition.
    """
    path = f"{partition}/{PARTITION_METADATA}"
    content = state.storage.read_if_present(path)
    began = None if content is None else parse_properties(content, path).get(_BEGAN_AT)
    completed = None if began is None else state.timeline.completion_time(began)
    return completed is None or completed > moment


def _is_made_from(partition: str, others: set[str]) -> bool:
    if partition == PARTITION_STATS:
        return COLUMN_STATS in others
    return partition.startswith(SECONDARY_INDEX_PREFIX) and RECORD_INDEX in others


# What `Choices` looks for among the settings.
CREATION_SETTINGS: tuple[Setting[object], ...] = (*COLUMN_SETTINGS, *GROUP_SETTINGS)

# The order in which Java initialises them.
_ORDER = (FILES, COLUMN_STATS, BLOOM_FILTERS, RECORD_INDEX, PARTITION_STATS)
# Partitions of these are named by users, and come last.
_NAMED = (SECONDARY_INDEX_PREFIX, EXPRESSION_INDEX_PREFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """What may be said about new partitions."""

    # The columns to keep statistics of; None for those that the settings choose.
    columns: tuple[str, ...] | None = None
    is_record_index_partitioned: bool = False
    # Of secondary and expression indexes.
    definitions: tuple[NewDefinition, ...] = ()
    settings: Settings = field(default_factory=Settings)

    @property
    def group_counts(self) -> GroupCounts:
        return GroupCounts(self.settings)


def create_metadata_table(
    storage: Storage,
    config: TableConfig,
    partitions: Sequence[str],
    times: TimeSource,
    ports: Ports,
    *,
    choices: BuildOptions | None = None,
) -> None:
    """Give a table without data a metadata table with these partitions; `files` is always one.

    The table's properties list them at the end, all at once. After a crash before that, nothing
    refers to what is there, and another call begins anew.
    """
    choices = choices or BuildOptions()
    wanted = in_order(storage, config, partitions, choices)
    if config.metadata_partitions:
        raise _exists(config)
    columns = _columns(config, wanted, choices)
    _begin_anew(storage, config)
    for partition in wanted:
        state = load_metadata_table(storage, config)
        times.move_past(state.timeline.active.newest_time())
        initialise_partition(state, partition, _empty(partition, choices), times, ports)
    _publish(storage, config, wanted, columns, choices)


def add_partitions(
    storage: Storage,
    config: TableConfig,
    partitions: Sequence[str],
    present: TableChange,
    times: TimeSource,
    ports: Ports,
    *,
    located: Iterable[Located] = (),
    choices: BuildOptions | None = None,
    assert_held: Callable[[], None] = lambda: None,
) -> None:
    """Give a table with data further partitions, and a metadata table if it has none.

    `present` describes the table as it is now: its files with their statistics as new ones, and the
    live ones of each partition; `located` are the places of all its keys. The caller holds the
    lock, and says in the last moment that he still does. Partitions count once the properties list
    them; what a crash leaves is replaced.
    """
    choices = choices or BuildOptions()
    missing = [one for one in (FILES, *partitions) if one not in config.metadata_partitions]
    wanted = in_order(storage, config, missing, choices)
    columns = _columns(config, wanted, choices)
    if not config.metadata_partitions:
        _begin_anew(storage, config)
    state, now_ms = load_metadata_table(storage, config), ports.clock.now_ms()
    forget_unfinished(state, now_ms, but=reserved_instants(storage))
    everything = replace(present, located=tuple(located) if RECORD_INDEX in wanted else ())
    for partition in wanted:
        state = load_metadata_table(storage, config)
        times.move_past(state.timeline.active.newest_time())
        state.storage.delete_folder(partition)
        shards = _filled(config, state, partition, everything, columns, choices)
        initialise_partition(state, partition, shards, times, ports)
    assert_held()
    _publish(storage, config, wanted, columns, choices)


def _begin_anew(storage: Storage, config: TableConfig) -> None:
    """Remove what a crash may have left, whole or in part; nothing refers to it."""
    storage.delete_folder(METADATA_FOLDER)
    remove_definitions(storage, definitions_path(config))
    write_properties(storage.below(METADATA_FOLDER), _properties(config))


def in_order(
    storage: Storage, config: TableConfig, partitions: Sequence[str], choices: BuildOptions
) -> tuple[str, ...]:
    """The partitions to make, each once; what cannot be made is refused."""
    refuse_metadata(config)
    defined = {one.partition for one in choices.definitions}
    named = sorted(one for one in set(partitions) & defined if one.startswith(_NAMED))
    unknown = sorted(set(partitions) - set(_ORDER) - set(named))
    if unknown:
        raise unmaintained(storage, unknown[0])
    have = {FILES, *partitions, *config.metadata_partitions}
    if PARTITION_STATS in have and COLUMN_STATS not in have:
        raise _refused(
            "partition_stats",
            "Partition statistics need column_stats, which the table does not have.",
        )
    if PARTITION_STATS in have and not config.is_partitioned:
        raise _refused("partition_stats", "The table has no partitions.")
    if choices.is_record_index_partitioned and not config.is_partitioned:
        raise _refused("a partitioned record_index", "The table has no partitions.")
    if choices.is_record_index_partitioned and index_version(config) == EARLY_INDEXES:
        raise _refused("a partitioned record_index", "Tables of version 8 have none.")
    new = {FILES, *partitions} - set(config.metadata_partitions)
    return tuple(one for one in (*_ORDER, *named) if one in new)


def _properties(config: TableConfig) -> dict[str, str]:
    """The properties of the metadata table of a table."""
    return {
        "hoodie.table.name": f"{config.name}_metadata",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": str(config.version),
        "hoodie.table.initial.version": str(config.version),
        "hoodie.timeline.layout.version": "2",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.archivelog.folder": "history",
        "hoodie.table.recordkey.fields": "key",
        "hoodie.populate.meta.fields": "false",
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
        "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
        "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
        "hoodie.datasource.write.drop.partition.columns": "false",
    }


def _empty(partition: str, choices: BuildOptions) -> dict[str, NewShard]:
    if partition == RECORD_INDEX and choices.is_record_index_partitioned:
        # Its shards come with the partitions of the table.
        return {}
    nothing = files_listing({ALL_PARTITIONS_KEY: {}}, []) if partition == FILES else NO_ENTRIES
    count = choices.group_counts.of_partition(partition)
    return {shard_of(partition): NewShard(count, nothing)}


def _filled(
    config: TableConfig,
    state: MetadataTable,
    partition: str,
    everything: TableChange,
    columns: tuple[str, ...],
    choices: BuildOptions,
) -> dict[str, NewShard]:
    added = definitions_of(
        replace(config, metadata_partitions=(partition,), metadata_partitions_inflight=()),
        {one.partition: one.record for one in choices.definitions},
    )
    known = content_of(state, (*load_definitions(state.root, config), *added), everything)
    content = replace(
        known,
        columns=columns or known.columns,
        has_early_statistics=known.has_early_statistics
        or (not known.columns and index_version(config) == EARLY_INDEXES),
        has_partitioned_record_index=choices.is_record_index_partitioned,
    ).of(partition)
    shards = _empty(partition, choices)
    if partition == RECORD_INDEX and choices.is_record_index_partitioned:
        # One for each partition, or an index of a table whose rows are all deleted would be none.
        listed = load_metadata_table(state.root, config).partition(FILES)
        names = [record_shard(name) for name in MetadataListing(listed).partitions()]
        content = {**dict.fromkeys(names, NO_ENTRIES), **content}
    for shard, entries in content.items():
        shards[shard] = NewShard(_group_count(partition, shard, entries, choices), entries)
    return shards


def _group_count(partition: str, shard: str, entries: Entries, choices: BuildOptions) -> int:
    if shard == shard_of(partition):
        return choices.group_counts.of_partition(partition, len(entries.keys))
    return choices.group_counts.of_record_shard(len(entries.keys))


def _columns(
    config: TableConfig, partitions: Sequence[str], choices: BuildOptions
) -> tuple[str, ...]:
    """The columns of the statistics, if they are to be made."""
    if COLUMN_STATS not in partitions:
        return ()
    if choices.columns is not None:
        return choices.columns
    if not config.create_schema:
        raise _refused("column_stats", "The table's properties do not say which columns it has.")
    schema = schema_from(config.create_schema, PROPERTIES_PATH).columns
    return chosen_columns(schema, choices.settings, config)


def _publish(
    storage: Storage,
    config: TableConfig,
    made: Sequence[str],
    columns: tuple[str, ...],
    choices: BuildOptions,
) -> None:
    """Define the indexes, then let the table's properties list what was made."""
    path = definitions_path(config)
    definitions = [one for one in choices.definitions if one.partition in made]
    if COLUMN_STATS in made:
        definitions.append(column_stats_definition(columns, version=index_version(config)))
    if RECORD_INDEX in made:
        is_partitioned = choices.is_record_index_partitioned
        definitions.append(record_index_definition(is_partitioned=is_partitioned))
    changes: dict[str, str | None] = {
        "hoodie.table.metadata.partitions": ",".join(sorted({*config.metadata_partitions, *made})),
        "hoodie.table.metadata.partitions.inflight": ",".join(
            one for one in config.metadata_partitions_inflight if one not in made
        ),
    }
    if definitions:
        define_indexes(storage, path, definitions)
        changes["hoodie.table.index.defs.path"] = path
    update_properties(storage, changes)


def _refused(what: str, why: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_metadata_partition",
        what=f"Lakewarden cannot create {what} in the metadata table.",
        why=why,
        now="Leave it out, or create what it needs first.",
    )


def _exists(config: TableConfig) -> InvalidRequest:
    return InvalidRequest(
        "metadata_table_exists",
        what=f"The table {config.name!r} already has a metadata table.",
        why=f"It has the partitions {', '.join(config.metadata_partitions)}.",
        now="Add partitions to it instead.",
    )
