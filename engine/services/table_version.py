"""The version of a table's format: from 8 to 9 and back, as Hudi's own calls change it.

Files and timeline stay as they are, so a crash at any moment leaves a table of one version or the
other, and the same call goes on.
"""

from dataclasses import dataclass

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Setting, Settings, flag, whole_number
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.metadata.building.drop import drop_partitions
from lakewarden.engine.metadata.reading.definitions import (
    definitions_path,
    load_definitions,
    stored_definitions,
)
from lakewarden.engine.metadata.reading.table import COLUMN_STATS, PARTITION_STATS, RECORD_INDEX
from lakewarden.engine.metadata.writing.definitions_file import NewDefinition, define_indexes
from lakewarden.engine.services.indexing.build import refuse_busy
from lakewarden.engine.services.indexing.request import keep_scope
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import METADATA_FOLDER, TableConfig
from lakewarden.engine.table.creation import WRITE_VERSION_KEY
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.table.versions import (
    CHANGEABLE_VERSIONS,
    EARLY_INDEXES,
    NEWEST,
    VERSION_KEY,
    WRITABLE_VERSIONS,
    changed_to,
)
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.state.context import Context, load_for_writing, reload_under_lock

WRITE_VERSION: Setting[int | None] = Setting(
    WRITE_VERSION_KEY,
    None,
    whole_number,
    "The version of a new table, 6, 8 or 9; by default 9. A table that is there has to have it, or"
    " an older one",
)
AUTO_UPGRADE = Setting(
    "hoodie.write.auto.upgrade",
    False,
    flag,
    "Whether a write to a table of version 8 upgrades it to 9 first",
)
VERSION_SETTINGS: tuple[Setting[object], ...] = (WRITE_VERSION, AUTO_UPGRADE)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class VersionChanged(Shown):
    """The version that a table has now, or would have."""

    version: int
    is_changed: bool
    # Partitions of the metadata table that have no form in the version.
    dropped: tuple[str, ...] = ()


def change_version(context: Context, version: int, *, dry_run: bool = False) -> VersionChanged:
    """Give a table another version, while nothing is under way on it.

    Steps of `version-change`: recover, lock, reload, indexes, definitions, metadata, properties,
    unlock.
    """
    snapshot = load_for_writing(context)
    if not {version, snapshot.config.version} <= set(CHANGEABLE_VERSIONS):
        raise _unsupported(snapshot.config.version, version)
    if snapshot.config.version == version:
        return VersionChanged(version=version, is_changed=False)
    # What the version has no words for is refused before anything is done.
    changed_to(snapshot.config, version)
    if dry_run:
        return VersionChanged(version=version, is_changed=True, dropped=_without_form(snapshot))
    recover_failed_instants(context)
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        refuse_busy(context, snapshot)
        dropped = _without_form(snapshot) if version < NEWEST else ()
        held.assert_held()
        storage, config = context.storage, snapshot.config
        if dropped:
            keep_scope(storage, config, dropped)
            drop_partitions(storage, config, dropped, snapshot.times)
        _redefine(storage, config)
        if config.metadata_partitions:
            update_properties(storage.below(METADATA_FOLDER), {VERSION_KEY: str(version)})
        held.assert_held()
        update_properties(storage, changed_to(config, version))
    return VersionChanged(version=version, is_changed=True, dropped=dropped)


def wants_upgrade(settings: Settings, config: TableConfig) -> bool:
    """Whether a write upgrades the table first; one that asks for an older version is refused."""
    wanted = settings[WRITE_VERSION]
    if wanted is not None and wanted < config.version:
        raise _unsupported(config.version, wanted)
    if wanted is not None and wanted not in WRITABLE_VERSIONS:
        raise _unsupported(config.version, wanted)
    return config.version < (wanted or NEWEST) and settings[AUTO_UPGRADE]


def _without_form(snapshot: Snapshot) -> tuple[str, ...]:
    """Partitions of the metadata table that version 8 does not have, or has in another format."""
    gone = {
        one.partition
        for one in load_definitions(snapshot.storage, snapshot.config)
        if one.version != EARLY_INDEXES or (one.partition == RECORD_INDEX and one.is_partitioned)
    }
    if COLUMN_STATS in gone and PARTITION_STATS in snapshot.config.metadata_partitions:
        gone.add(PARTITION_STATS)
    return tuple(sorted(gone))


def _redefine(storage: Storage, config: TableConfig) -> None:
    """Let all definitions name their format; releases of version 8 left it out."""
    path = definitions_path(config)
    known = stored_definitions(storage, path).records
    changed = [
        NewDefinition(*one).of_version(EARLY_INDEXES)
        for one in known.items()
        if not one[1].get("version")
    ]
    if changed:
        define_indexes(storage, path, changed)


def _unsupported(version: int, wanted: int) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_version_change",
        what=f"The table stays at version {version}, not {wanted}.",
        why="Lakewarden changes a table between versions 8 and 9, when it is asked to.",
        now="CALL upgrade_table and downgrade_table do; for version 6 use Hudi's.",
        version=str(wanted),
    )
