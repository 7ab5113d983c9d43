"""Metadata table partitions that were built on an undone instant: they are dropped.

A list of files that is untrue is made anew from a listing. Statistics and indexes are not made
again here; without them readers skip no files, and writes find keys in the files. The table's
properties remember what was dropped until the rollback or restore has ended, and can report it.
"""

from collections.abc import Collection

from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.metadata.building.create import add_partitions, built_after
from lakewarden.engine.metadata.building.drop import drop_partitions
from lakewarden.engine.metadata.entries.changes import NewFile, TableChange
from lakewarden.engine.metadata.reading.table import FILES, load_metadata_table
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import METADATA_FOLDER
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.timeline.instants.instant import InstantFiles
from lakewarden.engine.transaction.state.context import Context

# What the metadata table had when it was dropped, as a whole or in part.
DROPPED_KEY = "lakewarden.metadata.dropped"
_PARTITIONS_KEY = "hoodie.table.metadata.partitions"
_INFLIGHT_KEY = "hoodie.table.metadata.partitions.inflight"


def untrue_without(
    context: Context, snapshot: Snapshot, instants: Collection[InstantFiles]
) -> tuple[str, ...]:
    """The partitions that are untrue once some completed instants are no more."""
    times = [one.instant.completed for one in instants if one.instant.completed is not None]
    if not times or not snapshot.config.metadata_partitions:
        return ()
    state = load_metadata_table(context.storage, snapshot.config)
    return built_after(state, snapshot.config, min(times))


def drop_untrue(context: Context, snapshot: Snapshot, partitions: Collection[str]) -> None:
    """Drop partitions that are about to be untrue; under the lock, before anything is taken back.

    Without its list of files the metadata table goes as a whole. A crash leaves partitions that are
    remembered as dropped and are still true; the next attempt drops them.
    """
    if not partitions:
        return
    if FILES in partitions:
        drop(context, snapshot)
        return
    remember_dropped(context, snapshot, partitions)
    drop_partitions(context.storage, snapshot.config, partitions, snapshot.times)


def drop(context: Context, snapshot: Snapshot) -> None:
    """Drop the metadata table; from here on readers list the storage. Under the lock."""
    had = (*snapshot.config.metadata_partitions, *dropped_partitions(snapshot))
    update_properties(
        context.storage,
        {_PARTITIONS_KEY: "", _INFLIGHT_KEY: "", DROPPED_KEY: ",".join(dict.fromkeys(had))},
    )
    context.storage.delete_folder(METADATA_FOLDER)


def remember_dropped(context: Context, snapshot: Snapshot, partitions: Collection[str]) -> None:
    """Note which partitions are about to go, for the answer of the rollback or restore."""
    names = sorted({*dropped_partitions(snapshot), *partitions})
    if names:
        update_properties(context.storage, {DROPPED_KEY: ",".join(names)})


def dropped_partitions(snapshot: Snapshot) -> tuple[str, ...]:
    """The partitions that a rollback or restore under way has dropped."""
    return tuple(filter(None, snapshot.config.properties.get(DROPPED_KEY, "").split(",")))


def rebuild(context: Context, snapshot: Snapshot, instant: str) -> tuple[str, ...]:
    """Make the list of files anew if it was dropped; what is not made again. Under the lock."""
    dropped = dropped_partitions(snapshot)
    if not dropped:
        return ()
    if not snapshot.config.metadata_partitions:
        present = TableChange(instant=instant, new_files=_files(context, snapshot))
        add_partitions(
            context.storage, snapshot.config, (FILES,), present, snapshot.times, context.ports
        )
    update_properties(context.storage, {DROPPED_KEY: None})
    return tuple(one for one in dropped if one != FILES)


def _files(context: Context, snapshot: Snapshot) -> tuple[NewFile, ...]:
    """All files of completed instants."""
    return tuple(
        NewFile(partition, file.name, file.size_bytes)
        for partition, files in StorageListing(context.storage).files().items()
        for file in files
        if snapshot.timeline.is_completed(file.instant)
    )
