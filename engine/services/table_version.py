"""The version of a table's format: between 6, 8 and 9, as Hudi's own calls change it.

Data files stay as they are. Between 8 and 9 the timeline does so, too; from and to version 6 it
moves. A crash at any moment leaves a table of one version or the other, and the same call goes on.
"""

from dataclasses import dataclass, replace
from functools import partial

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Setting, Settings, flag, whole_number
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.metadata.building.drop import drop_metadata_table, drop_partitions
from lakewarden.engine.metadata.reading.definitions import (
    definitions_path,
    load_definitions,
    stored_definitions,
)
from lakewarden.engine.metadata.reading.table import COLUMN_STATS, PARTITION_STATS, RECORD_INDEX
from lakewarden.engine.metadata.writing.definitions_file import NewDefinition, define_indexes
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import RunLimits, run_pending
from lakewarden.engine.services.indexing.build import refuse_busy
from lakewarden.engine.services.indexing.drop import drop_metadata
from lakewarden.engine.services.indexing.request import keep_scope
from lakewarden.engine.services.planning.plan_request import PlanRequest, Refusal
from lakewarden.engine.services.planning.schedule import schedule
from lakewarden.engine.services.timeline_move import (
    copy_timeline,
    refuse_logs,
    remove_timeline,
    with_logs,
)
from lakewarden.engine.snapshot import Snapshot, retrying_view
from lakewarden.engine.storage.port import Storage, no_file_times
from lakewarden.engine.table.config import METADATA_FOLDER, TableConfig
from lakewarden.engine.table.creation import WRITE_VERSION_KEY
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.table.versions import (
    EARLY_INDEXES,
    NEWEST,
    OLDEST,
    VERSION_KEY,
    WRITABLE_VERSIONS,
    after,
    changed_to,
    is_writable,
)
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.state.context import Context, load_for_writing, reload_under_lock

# A plan may be limited in what it reads; what is left is for the next.
_ROUNDS_MAX = 100

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
    "Whether a write to a table of version 6 or 8 upgrades it to 9 first",
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

    Steps of `version-change`: fold, recover, lock, reload, indexes, definitions, metadata,
    timeline, properties, leave, unlock.
    """
    snapshot = load_for_writing(context, publishes=False)
    if version not in WRITABLE_VERSIONS:
        raise _unsupported(snapshot.config.version, version)
    if snapshot.config.version == version:
        return VersionChanged(version=version, is_changed=False)
    # What the version has no words for is refused before anything is done.
    _refuse(context, snapshot, version)
    if dry_run:
        gone = _without_form(snapshot, version)
        return VersionChanged(version=version, is_changed=True, dropped=gone)
    if OLDEST in (version, snapshot.config.version):
        _fold_logs(context, snapshot)
        snapshot = load_for_writing(context, publishes=False)
    if is_writable(snapshot.config, context.storage):
        recover_failed_instants(context)
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context, publishes=False)
        refuse_busy(context, snapshot)
        _refuse(context, snapshot, version)
        layout = after(snapshot.config.properties, changed_to(snapshot.config, version)).layout
        if layout.version != snapshot.layout.version:
            refuse_logs(snapshot, layout)
        dropped = _without_form(snapshot, version)
        held.assert_held()
        _change(context, held, snapshot, version, dropped)
    return VersionChanged(version=version, is_changed=True, dropped=dropped)


def _fold_logs(context: Context, snapshot: Snapshot) -> None:
    """Step `version-change.fold`: compact until no newest slice has logs, as far as that goes.

    A table of version 6 loses its metadata table first, which could not learn of the new files.
    """
    if not _has_logs(context):
        return
    if snapshot.config.version == OLDEST:
        drop_metadata(context)
        context = replace(context, only_folds=True)
    for _ in range(_ROUNDS_MAX):
        run_pending(context, COMPACTION, RunLimits())
        if not _has_logs(context):
            return
        if isinstance(schedule(context, COMPACTION, PlanRequest(cancellable=False)), Refusal):
            return


def _has_logs(context: Context) -> bool:
    found = retrying_view(partial(load_for_writing, context, publishes=False), with_logs)
    return bool(found)


def _change(
    context: Context, held: HeldLock, snapshot: Snapshot, version: int, dropped: tuple[str, ...]
) -> None:
    """Steps `version-change.indexes` to `version-change.leave`."""
    storage, config, before = context.storage, snapshot.config, snapshot.layout
    changes = changed_to(config, version)
    layout = after(config.properties, changes).layout
    if dropped:
        keep_scope(storage, config, dropped)
        if layout.version != before.version:
            drop_metadata_table(storage, config)
        else:
            drop_partitions(storage, config, dropped, snapshot.times)
    if layout.version == before.version:
        _redefine(storage, config)
        if config.metadata_partitions:
            update_properties(storage.below(METADATA_FOLDER), {VERSION_KEY: str(version)})
    else:
        copy_timeline(storage, snapshot.timeline, layout, context.now_ms())
    held.assert_held()
    update_properties(storage, changes)
    if layout.version != before.version:
        remove_timeline(storage, before)


def _refuse(context: Context, snapshot: Snapshot, version: int) -> None:
    """Refuse what the version has no words for, or no form."""
    changed_to(snapshot.config, version)
    if version == OLDEST and not context.storage.has_file_times:
        raise no_file_times(context.storage.location.uri)


def wants_upgrade(settings: Settings, config: TableConfig) -> bool:
    """Whether a write upgrades the table first; one that asks for an older version is refused."""
    wanted = settings[WRITE_VERSION]
    if wanted is not None and wanted < config.version:
        raise _unsupported(config.version, wanted)
    if wanted is not None and wanted not in WRITABLE_VERSIONS:
        raise _unsupported(config.version, wanted)
    return config.version < (wanted or NEWEST) and settings[AUTO_UPGRADE]


def _without_form(snapshot: Snapshot, version: int) -> tuple[str, ...]:
    """Partitions of the metadata table that a version does not have, or has in another format.

    From and to version 6 that is all of them: its metadata table has the timeline of layout 1.
    """
    if OLDEST in (version, snapshot.config.version):
        return snapshot.config.metadata_partitions
    if version == NEWEST:
        return ()
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
        why="Lakewarden changes a table between versions 6, 8 and 9, when it is asked to.",
        now="CALL upgrade_table and downgrade_table do.",
        version=str(wanted),
    )
