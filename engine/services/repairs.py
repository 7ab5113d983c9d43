"""Repairs of what stands beside the data: files of partitions, properties, damaged plans of cleans.

Each is one change under the table's lock; after a crash the same call goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from lakewarden.engine.file_groups.file_names import PARTITION_METADATA
from lakewarden.engine.formats.instant_metadata import clean
from lakewarden.engine.formats.properties import CHECKSUM_KEY, parse_properties
from lakewarden.engine.index.identity import recorded_identity
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableConfig, table_config
from lakewarden.engine.table.creation import is_creation_property
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.timeline.instants.instant import Action, InstantFiles, StateFile
from lakewarden.engine.transaction.state.context import Context, load_for_writing, reload_under_lock
from lakewarden.engine.transaction.state.live_attempt import live_attempt
from lakewarden.engine.write.files.write_groups import ensure_partition, write_in_base_format

BASE_FORMAT_KEY = "hoodie.partition.metafile.use.base.format"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PartitionFile(Shown):
    """How a folder says that it is a partition."""

    partition: str
    has_text: bool
    has_base_format: bool


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PropertyChange(Shown):
    """A property before and after; None where there was none, or is none any more."""

    name: str
    old: str | None
    new: str | None


def migrate_partition_files(context: Context, *, dry_run: bool) -> tuple[PartitionFile, ...]:
    """Let folders say by a file of the base format that they are partitions; how they say it now.

    The new file is there before the old one goes, so that each reader finds one of them.
    """
    found = _partition_files(load_for_writing(context))
    if dry_run:
        return found
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        storage, now = context.storage, _partition_files(snapshot)
        for one in now:
            text = _below(one.partition, PARTITION_METADATA)
            if not one.has_base_format:
                said = storage.read_if_present(text)
                instant = parse_properties(said, text).get("commitTime") if said else None
                write_in_base_format(storage, one.partition, instant or _newest(snapshot))
            held.assert_held()
            storage.delete(text)
        update_properties(storage, {BASE_FORMAT_KEY: "true"})
    return found


def add_partition_files(snapshot: Snapshot, *, dry_run: bool) -> tuple[PartitionFile, ...]:
    """Put the file that makes a folder a partition where it is lost; how folders said it before."""
    found = _partition_files(snapshot)
    for one in found:
        if not dry_run and not one.has_text and not one.has_base_format:
            ensure_partition(snapshot.storage, one.partition, _newest(snapshot))
    return found


def _partition_files(snapshot: Snapshot) -> tuple[PartitionFile, ...]:
    return tuple(
        _partition_file(snapshot.storage, partition)
        for partition in snapshot.source(use_metadata=True).partitions()
    )


def _partition_file(storage: Storage, partition: str) -> PartitionFile:
    names = {one.name for one in storage.list(partition).files}
    has_base_format = any(name.startswith(f"{PARTITION_METADATA}.") for name in names)
    return PartitionFile(
        partition=partition,
        has_text=PARTITION_METADATA in names,
        has_base_format=has_base_format,
    )


def _newest(snapshot: Snapshot) -> str:
    return snapshot.timeline.active.completed()[-1].requested


def _below(partition: str, name: str) -> str:
    return f"{partition}/{name}" if partition else name


def overwrite_properties(
    context: Context, given: Mapping[str, str], *, dry_run: bool
) -> tuple[PropertyChange, ...]:
    """Replace a table's properties; refused where rows, files or indexes would not follow."""
    after = {name: value for name, value in given.items() if name != CHECKSUM_KEY}
    found = _changes(load_for_writing(context).config, after)
    if not dry_run:
        with context.lock.hold() as held:
            found = _changes(reload_under_lock(context).config, after)
            held.assert_held()
            update_properties(context.storage, {one.name: one.new for one in found})
    return found


def _changes(config: TableConfig, after: Mapping[str, str]) -> tuple[PropertyChange, ...]:
    before = {name: value for name, value in config.properties.items() if name != CHECKSUM_KEY}
    wanted = table_config(after)
    found = tuple(
        PropertyChange(name=name, old=before.get(name), new=after.get(name))
        for name in sorted(before.keys() | after.keys())
    )
    for one in found:
        if one.old != one.new and is_creation_property(one.name):
            raise _other_table(one.name)
    for part in fields(TableConfig):
        if part.name != "properties" and getattr(config, part.name) != getattr(wanted, part.name):
            raise _other_table(part.name)
    if recorded_identity(config) != recorded_identity(wanted):
        raise _other_table("the index")
    return found


def _other_table(name: str) -> InvalidRequest:
    return InvalidRequest(
        "other_properties",
        what=f"The new properties describe another table: they differ in {name}.",
        why="The rows, files and indexes that are there would not be those that they describe.",
        now="Leave it as it is. ALTER TABLE and CALL set_index change what can be changed.",
        property=name,
    )


def remove_damaged_cleans(context: Context, *, dry_run: bool) -> tuple[tuple[str, bool], ...]:
    """Remove pending cleans whose plans cannot be read; each with whether it goes.

    One that is being carried out stays: who does so has read the plan.
    """
    if dry_run:
        damaged = _damaged_cleans(context, load_for_writing(context))
        return tuple((requested, goes) for requested, goes, _ in damaged)
    with context.lock.hold() as held:
        damaged = _damaged_cleans(context, reload_under_lock(context))
        for file in (file for _, goes, files in damaged if goes for file in reversed(files)):
            held.assert_held()
            # What is left by a crash is still a damaged clean.
            context.storage.delete(file.entry.path)
    return tuple((requested, goes) for requested, goes, _ in damaged)


def _damaged_cleans(
    context: Context, snapshot: Snapshot
) -> tuple[tuple[str, bool, tuple[StateFile, ...]], ...]:
    """The pending cleans without a plan that can be read: whether they may go, and their files."""
    found = []
    for instant in snapshot.timeline.active.pending((Action.CLEAN,)):
        files = snapshot.timeline.active.files_of(instant)
        if files is not None and _is_damaged(context.storage, files):
            goes = live_attempt(context, snapshot.ledger(instant.requested)) is None
            found.append((instant.requested, goes, tuple(files)))
    return tuple(found)


def _is_damaged(storage: Storage, files: InstantFiles) -> bool:
    if files.requested is None:
        return True
    path = files.requested.entry.path
    try:
        clean.decode_plan(storage.read(path), path)
    except CorruptTable:
        return True
    return False
