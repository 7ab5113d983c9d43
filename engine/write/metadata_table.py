"""The metadata table of a new table: which partitions it gets, and when it is made."""

from collections.abc import Mapping

from lakewarden.engine.index.identity import SCOPE_KEY
from lakewarden.engine.index.kinds import IndexKind, KeyScope
from lakewarden.engine.index.options import INDEX_TYPE
from lakewarden.engine.kernel.settings import Setting, Settings, flag
from lakewarden.engine.metadata.building.create import (
    CREATION_SETTINGS,
    BuildOptions,
    create_metadata_table,
)
from lakewarden.engine.metadata.reading.table import (
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
)
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.keygen.virtual_keys import refuse_key_index
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.table.versions import has_metadata_written
from lakewarden.engine.transaction.state.context import Context, reload_under_lock

ENABLED = Setting(
    "hoodie.metadata.enable",
    True,
    flag,
    "Whether a new table has a metadata table; a write without it drops that of version 6",
)
COLUMN_STATS_ENABLED = Setting(
    "hoodie.metadata.index.column.stats.enable",
    True,
    flag,
    "Whether a new table keeps the ranges of its columns",
)
RECORD_INDEX_ENABLED = Setting(
    "hoodie.metadata.global.record.level.index.enable",
    False,
    flag,
    "Whether a new table has an index of all record keys",
    aliases=("hoodie.metadata.record.index.enable",),
)
PARTITIONED_RECORD_INDEX_ENABLED = Setting(
    "hoodie.metadata.record.level.index.enable",
    False,
    flag,
    "Whether a new table has an index of record keys for each partition",
)
METADATA_SETTINGS: tuple[Setting[object], ...] = (
    ENABLED,
    COLUMN_STATS_ENABLED,
    RECORD_INDEX_ENABLED,
    PARTITIONED_RECORD_INDEX_ENABLED,
    *CREATION_SETTINGS,
)
# The names that `Table.create(indexes=[...])` takes, and what they switch on.
INDEX_SWITCHES: Mapping[str, str] = {
    COLUMN_STATS: COLUMN_STATS_ENABLED.key,
    PARTITION_STATS: COLUMN_STATS_ENABLED.key,
    RECORD_INDEX: RECORD_INDEX_ENABLED.key,
}


def ensure_metadata_table(context: Context, snapshot: Snapshot) -> bool:
    """Give a table that has never been written to its metadata table; whether it was changed.

    Usually its creation did so; a crash in between leaves it to the first write. A table with data
    is left as it is.
    """
    if not context.settings[ENABLED] or not _is_due(snapshot):
        return False
    with context.lock.hold():
        current = reload_under_lock(context)
        if _is_due(current):
            _record_scope(context, current)
            create_metadata_table(
                context.storage,
                current.config,
                default_partitions(current.config, context.settings),
                current.times,
                context.ports,
                choices=BuildOptions(
                    is_record_index_partitioned=has_partitioned_index(context.settings),
                    settings=context.settings,
                ),
            )
    return True


def _is_due(current: Snapshot) -> bool:
    if not has_metadata_written(current.config):
        return False
    return not current.config.metadata_partitions and not current.timeline.active.instants


def scope_of_default(settings: Settings) -> KeyScope:
    """Within what a key stands for one row in a table that gets its indexes by these settings."""
    has_index = settings[RECORD_INDEX_ENABLED] and not has_partitioned_index(settings)
    return KeyScope.TABLE if has_index else KeyScope.PARTITION


def _record_scope(context: Context, current: Snapshot) -> None:
    """A table that is to have an index that its creation did not know of says so before."""
    scope = current.config.properties.get(SCOPE_KEY)
    wanted = scope_of_default(context.settings)
    if scope is not None and scope != wanted:
        update_properties(context.storage, {SCOPE_KEY: wanted.value})


def default_partitions(config: TableConfig, settings: Settings) -> tuple[str, ...]:
    """The partitions that a new metadata table gets."""
    found = [FILES]
    if settings[COLUMN_STATS_ENABLED]:
        found += [COLUMN_STATS, PARTITION_STATS] if config.is_partitioned else [COLUMN_STATS]
    if settings[RECORD_INDEX_ENABLED] or has_partitioned_index(settings) or _is_asked_for(settings):
        refuse_key_index(config, RECORD_INDEX)
        found.append(RECORD_INDEX)
    return tuple(found)


def has_partitioned_index(settings: Settings) -> bool:
    """Whether a new record index has the keys of each partition by themselves."""
    is_asked_for = settings[INDEX_TYPE] is IndexKind.RECORD_INDEX
    return settings[PARTITIONED_RECORD_INDEX_ENABLED] or is_asked_for


def _is_asked_for(settings: Settings) -> bool:
    """Whether writes look keys up in a global record index."""
    return settings[INDEX_TYPE] is IndexKind.GLOBAL_RECORD_INDEX
