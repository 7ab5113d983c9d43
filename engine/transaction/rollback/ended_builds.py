"""Ended builds: what a build of an index leaves is removed, once it was cancelled or superseded.

Nothing of a build counts before its partitions are ready, so nothing has to be taken back: its
partitions, definitions and instants go, first what writers look at, last what shows the build.
"""

from collections.abc import Collection

from lakewarden.engine.file_groups.file_names import BaseFile
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.metadata.building.drop import drop_partitions
from lakewarden.engine.metadata.building.initialise import forget_unfinished
from lakewarden.engine.metadata.reading.table import load_metadata_table
from lakewarden.engine.metadata.writing.builds import (
    BuildNotes,
    forget_notes,
    planned_partitions,
    read_notes,
    reserved_instants,
)
from lakewarden.engine.metadata.writing.instants import remove
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import METADATA_FOLDER
from lakewarden.engine.timeline.heartbeats import delete_standard_heartbeat
from lakewarden.engine.timeline.instants.instant import Action, InstantFiles
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.sweep.sweep import delete_heartbeats


def end_build(
    context: Context,
    held: HeldLock,
    snapshot: Snapshot,
    files: InstantFiles,
    *,
    with_ready: Collection[str] = (),
) -> None:
    """Take a pending build off the table; the caller has the lock, and its ledger allows it.

    Steps of `index-end`: partitions, instants, notes, timeline. A partition that is ready stays,
    since it is another build's, but for those that the caller names. A crash leaves a build that
    was cancelled; the next holder of the lock goes on.
    """
    instant = files.instant.requested
    notes = read_notes(context.storage, instant)
    planned = set(planned_partitions(snapshot.timeline.active, files))
    names = planned | set(() if notes is None else notes.partitions)
    ready = set(snapshot.config.metadata_partitions) - set(with_ready)
    held.assert_held()
    if snapshot.config.metadata_partitions:
        _drop(context, snapshot, names - ready)
        if notes is not None:
            remove_base_files(context, snapshot, notes, names & ready)
        made = () if notes is None else (notes.groups_instant, notes.base_instant)
        _remove_instants(context, snapshot, {instant, *filter(None, made)})
    forget_notes(context.storage, instant)
    held.assert_held()
    for file in (files.inflight, files.requested):
        if file is not None:
            context.storage.delete(file.entry.path)
    delete_heartbeats(context.storage, snapshot.ledger(instant))


def _drop(context: Context, snapshot: Snapshot, names: Collection[str]) -> None:
    """Step `index-end.partitions`."""
    if names:
        storage, config = context.storage, snapshot.config
        drop_partitions(storage, config, names, snapshot.times)


def remove_base_files(
    context: Context, snapshot: Snapshot, notes: BuildNotes, names: Collection[str]
) -> None:
    """Step `index-end.partitions` for what is ready: base files that have not taken their place.

    The caller has the lock.
    """
    state = load_metadata_table(context.storage, snapshot.config)
    if state.timeline.is_completed(notes.base_instant):
        return
    for name in sorted(names):
        for file in state.files(name):
            if isinstance(file, BaseFile) and file.instant == notes.base_instant:
                state.storage.delete(f"{name}/{file.name}")


def _remove_instants(context: Context, snapshot: Snapshot, own: Collection[str]) -> None:
    """Step `index-end.instants`: those of the metadata table that were not completed."""
    state = load_metadata_table(context.storage, snapshot.config)
    for instant in sorted(own):
        found = state.started(instant, Action.DELTA_COMMIT)
        if found is not None and found.completed is None:
            remove(state, found)
        delete_standard_heartbeat(context.storage.below(METADATA_FOLDER), instant)
    reserved = reserved_instants(context.storage) - set(own)
    forget_unfinished(state.again(), context.now_ms(), but=reserved)
