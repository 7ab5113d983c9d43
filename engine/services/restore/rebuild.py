"""The metadata table made anew, where it cannot be taken back: the list of files, from a listing.

Statistics and indexes are not made again here; without them readers leave nothing out, and writes
find keys in the files. The table's properties remember that there is a list to be made until it is.
"""

from lakewarden.engine.metadata.changes import NewFile, TableChange
from lakewarden.engine.metadata.create import add_partitions
from lakewarden.engine.metadata.table import FILES
from lakewarden.engine.plans.context import Context
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import METADATA_FOLDER
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.view.listing import StorageListing

# What the metadata table had when a restore dropped it.
DROPPED_KEY = "lakewarden.metadata.dropped"
_PARTITIONS_KEY = "hoodie.table.metadata.partitions"
_INFLIGHT_KEY = "hoodie.table.metadata.partitions.inflight"


def drop(context: Context, moment: Snapshot) -> None:
    """Drop the metadata table; from here on readers list the storage. Under the lock."""
    partitions = ",".join(moment.config.metadata_partitions)
    update_properties(
        context.storage, {_PARTITIONS_KEY: "", _INFLIGHT_KEY: "", DROPPED_KEY: partitions}
    )
    context.storage.delete_folder(METADATA_FOLDER)


def dropped_partitions(moment: Snapshot) -> tuple[str, ...]:
    """What was dropped and is still to be made anew."""
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
