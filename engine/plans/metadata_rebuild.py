"""The metadata table where something that it began with is taken back: what is untrue is dropped.

A list of files that is untrue is made anew from a listing. Statistics and indexes are not made
again here; without them readers leave nothing out, and writes find keys in the files. The table's
properties remember what was dropped until whoever takes back has ended, and can say so.
"""

from collections.abc import Collection

from lakewarden.engine.metadata.built_after import built_after
from lakewarden.engine.metadata.changes import NewFile, TableChange
from lakewarden.engine.metadata.create import add_partitions
from lakewarden.engine.metadata.drop import drop_partitions
from lakewarden.engine.metadata.table import FILES, load_metadata_table
from lakewarden.engine.plans.context import Context
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import METADATA_FOLDER
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.view.listing import StorageListing

# What the metadata table had when it was dropped, as a whole or in part.
DROPPED_KEY = "lakewarden.metadata.dropped"
_PARTITIONS_KEY = "hoodie.table.metadata.partitions"
_INFLIGHT_KEY = "hoodie.table.metadata.partitions.inflight"


def untrue_without(
    context: Context, moment: Snapshot, instants: Collection[InstantFiles]
) -> tuple[str, ...]:
    """The partitions that are untrue once some completed instants are no more."""
    times = [one.instant.completed for one in instants if one.instant.completed is not None]
    if not times or not moment.config.metadata_partitions:
        return ()
    state = load_metadata_table(context.storage, moment.config)
    return built_after(state, moment.config, min(times))


def drop_untrue(context: Context, moment: Snapshot, partitions: Collection[str]) -> None:
    """Drop partitions that are about to be untrue; under the lock, before anything is taken back.

    Without its list of files the metadata table goes as a whole. A crash leaves partitions that are
    remembered as dropped and are still true; whoever goes on drops them.
    """
    if not partitions:
        return
    if FILES in partitions:
        drop(context, moment)
        return
    _remember(context, moment, partitions)
    drop_partitions(context.storage, moment.config, partitions, moment.times, context.ports)


def drop(context: Context, moment: Snapshot) -> None:
    """Drop the metadata table; from here on readers list the storage. Under the lock."""
    had = (*moment.config.metadata_partitions, *dropped_partitions(moment))
    update_properties(
        context.storage,
        {_PARTITIONS_KEY: "", _INFLIGHT_KEY: "", DROPPED_KEY: ",".join(dict.fromkeys(had))},
    )
    context.storage.delete_folder(METADATA_FOLDER)


def _remember(context: Context, moment: Snapshot, partitions: Collection[str]) -> None:
    names = sorted({*dropped_partitions(moment), *partitions})
    update_properties(context.storage, {DROPPED_KEY: ",".join(names)})


def dropped_partitions(moment: Snapshot) -> tuple[str, ...]:
    """What was dropped by whoever has not ended yet."""
    return tuple(filter(None, moment.config.properties.get(DROPPED_KEY, "").split(",")))


def rebuild(context: Context, moment: Snapshot, instant: str) -> tuple[str, ...]:
    """Make the list of files anew if it was dropped; what is not made again. Under the lock."""
    dropped = dropped_partitions(moment)
    if not dropped:
        return ()
    if not moment.config.metadata_partitions:
        present = TableChange(instant=instant, new_files=_files(context, moment))
        add_partitions(
            context.storage, moment.config, (FILES,), present, moment.times, context.ports
        )
    update_properties(context.storage, {DROPPED_KEY: None})
    return tuple(one for one in dropped if one != FILES)


def _files(context: Context, moment: Snapshot) -> tuple[NewFile, ...]:
    """All files of completed instants."""
    return tuple(
        NewFile(partition, file.name, file.size_bytes)
        for partition, files in StorageListing(context.storage).files().items()
        for file in files
        if moment.timeline.is_completed(file.instant)
    )
