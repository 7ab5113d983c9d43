"""Builds: what is known of the partitions that are being built beside writers.

The plan on the timeline names the partitions; Java's builds by SQL show nowhere else. What a build
of ours has to remember besides is in documents of its own, beside the ledger: where its file groups
are, which writes it has to catch up with, and which file groups have their base file.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from lakewarden.engine.file_groups.file_names import PARTITION_METADATA
from lakewarden.engine.formats.instant_metadata import indexing
from lakewarden.engine.formats.instant_metadata.binding import TORN_PLAN, value_of
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.metadata.reading.table import MetadataTable
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.timeline.instants.instant import Action, InstantFiles
from lakewarden.engine.timeline.ledger.entries import (
    PRIVATE_FOLDER,
    format_document,
    parse_document,
)
from lakewarden.engine.timeline.timeline import ActiveTimeline

BUILDS_FOLDER = f"{PRIVATE_FOLDER}/builds"
# In the extra metadata of a plan: its partitions are ready, and only get new base files.
REFRESH_KEY = "lakewarden.refresh"
_PARTITIONS_KEY = "hoodie.table.metadata.partitions"
_INFLIGHT_KEY = "hoodie.table.metadata.partitions.inflight"
_BUILD, _GROUP, _CAUGHT = "index-build", "index-group", "index-caught"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildNotes:
    """What a build began with, written down under the lock together with its file groups."""

    instant: str
    partitions: tuple[str, ...]
    # The columns of statistics, and whether a record index has shards.
    columns: tuple[str, ...] = ()
    is_partitioned: bool = False
    # The newest completed write before which none is pending; empty for a table without any.
    upto: str = ""
    # The instants that were pending then, oldest first.
    pending: tuple[str, ...] = ()
    # How many file groups each shard has; a shard is named as `partition/shard`.
    group_counts: Mapping[str, int] = field(default_factory=dict)
    # The instants on the metadata table: of the groups, and of the base files.
    groups_instant: str = ""
    base_instant: str = ""
    has_base: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedGroup:
    """The base file of one file group, as it was written."""

    partition: str
    file_id: str
    name: str
    entries: int
    size_bytes: int
    checksum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CaughtUp:
    """An instant that the build has caught up with."""

    instant: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BuildDone(Shown):
    """A build that has ended well."""

    instant: str
    partitions: tuple[str, ...]
    # The write that the base files go up to, and the newest one that the index knows of.
    upto: str
    caught_up_to: str
    records_count: int | None = None
    # Another attempt had completed it before.
    was_completed_before: bool = False
    # The plan of Java's that it took the place of.
    superseded: str | None = None


def builds_on(active: ActiveTimeline) -> Iterator[tuple[InstantFiles, tuple[str, ...]]]:
    """The pending builds, oldest first, each with the partitions that its plan names."""
    for instant in active.pending((Action.INDEXING,)):
        files = active.files_of(instant)
        if files is not None:
            yield files, tuple(planned_partitions(active, files))


def planned_partitions(
    active: ActiveTimeline, files: InstantFiles
) -> dict[str, indexing.IndexPartition]:
    """What a plan says of each partition; nothing if it was cut short, or has gone meanwhile."""
    if files.requested is None:
        return {}
    try:
        plan = indexing.decode_plan(
            active.read(files.requested.instant), files.requested.entry.path
        )
    except CorruptTable as error:
        if error.code not in (TORN_PLAN, "missing_file"):
            raise
        return {}
    infos = (one for one in plan.index_partition_infos if one.metadata_partition_path)
    return {one.metadata_partition_path or "": one for one in infos}


def being_built(state: MetadataTable) -> tuple[str, ...]:
    """The partitions that are being built, by the table's properties and by pending plans."""
    config = state.config
    planned = (name for _, names in builds_on(state.data_timeline.active) for name in names)
    found = dict.fromkeys((*config.metadata_partitions_inflight, *planned))
    return tuple(one for one in found if one not in config.metadata_partitions)


def is_refresh(active: ActiveTimeline, files: InstantFiles) -> bool:
    """Whether a plan is of new base files for partitions that are ready."""
    return any(
        REFRESH_KEY in one.extra_metadata for one in planned_partitions(active, files).values()
    )


def compacted_partitions(state: MetadataTable) -> tuple[str, ...]:
    """The ready partitions, but for those that get new base files in another way."""
    active = state.data_timeline.active
    refreshed = {
        name for files, names in builds_on(active) if is_refresh(active, files) for name in names
    }
    return tuple(one for one in state.config.metadata_partitions if one not in refreshed)


def has_all_groups(state: MetadataTable, partition: str) -> bool:
    """Whether all file groups of a partition are there: what tells of it is written after them."""
    return state.storage.stat(f"{partition}/{PARTITION_METADATA}") is not None


def read_notes(storage: Storage, instant: str) -> BuildNotes | None:
    """What the build of an instant began with; None where no attempt of ours has started."""
    path = _notes_path(instant)
    payload = storage.read_if_present(path)
    if not payload or not payload.endswith(b"}"):
        return None
    return value_of(
        BuildNotes, parse_document(payload, path, kinds=frozenset({_BUILD})).record, path, str
    )


def write_notes(storage: Storage, notes: BuildNotes) -> None:
    storage.put(_notes_path(notes.instant), format_document(_BUILD, notes))


def note_base(storage: Storage, notes: BuildNotes) -> BuildNotes:
    """Remember that the base files are published."""
    done = replace(notes, has_base=True)
    write_notes(storage, done)
    return done


def finished_groups(storage: Storage, instant: str) -> dict[tuple[str, str], FinishedGroup]:
    """The file groups that have their base file, by partition and file id."""
    found = {}
    for entry in storage.list(f"{BUILDS_FOLDER}/{instant}/groups").files:
        payload = storage.read_if_present(entry.path)
        # One that was cut short is written again.
        if payload and payload.endswith(b"}"):
            record = parse_document(payload, entry.path, kinds=frozenset({_GROUP})).record
            one = value_of(FinishedGroup, record, entry.path, str)
            found[one.partition, one.file_id] = one
    return found


def note_group(storage: Storage, instant: str, group: FinishedGroup) -> None:
    path = f"{BUILDS_FOLDER}/{instant}/groups/{group.partition}.{group.file_id}.json"
    storage.put(path, format_document(_GROUP, group))


def caught_up(storage: Storage, instant: str) -> frozenset[str]:
    """The instants that a build has caught up with."""
    names = (entry.name for entry in storage.list(f"{BUILDS_FOLDER}/{instant}/caught").files)
    return frozenset(name.removesuffix(".json") for name in names)


def note_caught_up(storage: Storage, instant: str, caught: str) -> None:
    path = f"{BUILDS_FOLDER}/{instant}/caught/{caught}.json"
    storage.put(path, format_document(_CAUGHT, CaughtUp(instant=caught)))


def forget_groups(storage: Storage, instant: str) -> None:
    """Have all base files made anew."""
    storage.delete_folder(f"{BUILDS_FOLDER}/{instant}/groups")


def forget_notes(storage: Storage, instant: str) -> None:
    """Remove what a build that has ended had to remember, its beginning last."""
    for part in ("groups", "caught"):
        storage.delete_folder(f"{BUILDS_FOLDER}/{instant}/{part}")
    storage.delete_folder(f"{BUILDS_FOLDER}/{instant}")


def reserved_instants(storage: Storage) -> frozenset[str]:
    """The instants of the metadata table that builds under way work with."""
    notes = (read_notes(storage, instant) for instant in builds_with_notes(storage))
    known = (one for one in notes if one is not None)
    return frozenset(name for one in known for name in (one.groups_instant, one.base_instant))


def list_as_ready(storage: Storage, config: TableConfig, content: bytes, path: str) -> None:
    """Let the table's properties list what a build has completed, all of it at once."""
    done = indexing.decode(content, path)
    names = {one.metadata_partition_path or "" for one in done.index_partition_infos}
    if names <= set(config.metadata_partitions) - set(config.metadata_partitions_inflight):
        return
    ready = sorted({*config.metadata_partitions, *names})
    left = [one for one in config.metadata_partitions_inflight if one not in names]
    update_properties(storage, {_PARTITIONS_KEY: ",".join(ready), _INFLIGHT_KEY: ",".join(left)})


def list_as_building(storage: Storage, config: TableConfig, names: tuple[str, ...]) -> None:
    """Let the table's properties list what is being built, so that writers report to it."""
    building = sorted({*config.metadata_partitions_inflight, *names})
    update_properties(storage, {_INFLIGHT_KEY: ",".join(building)})


def builds_with_notes(storage: Storage) -> tuple[str, ...]:
    """The instants of the builds that have something written down, ended ones among them."""
    folders = storage.list(BUILDS_FOLDER).folders
    return tuple(folder.rstrip("/").rpartition("/")[2] for folder in folders)


def _notes_path(instant: str) -> str:
    return f"{BUILDS_FOLDER}/{instant}/build.json"
