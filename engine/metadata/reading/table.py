"""The metadata table: Hudi's own table about a table, at `.hoodie/metadata`.

It is read as of a snapshot of the data's timeline. A write commits here first, so the deltacommit
of an instant that is pending there does not count, nor does one that started after the snapshot.
Writers to it use the same snapshot: it is the part that is about the metadata table.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial

from lakewarden.engine.file_groups.file_names import DataFile
from lakewarden.engine.file_groups.listing import HOODIE_FOLDER, RecordedSizes, data_files
from lakewarden.engine.file_groups.planned_slices import slice_among
from lakewarden.engine.file_groups.slices import (
    ClosedFiles,
    FileGroupId,
    FileSlice,
    Visibility,
    file_groups,
    load_visibility,
)
from lakewarden.engine.formats.hfile.blocks import BlockCache
from lakewarden.engine.formats.instant_metadata import compaction
from lakewarden.engine.formats.instant_metadata.compaction import (
    CompactionOperation,
    CompactionPlan,
)
from lakewarden.engine.formats.path_names import escape_file_id
from lakewarden.engine.formats.properties import parse_properties
from lakewarden.engine.kernel.caches import lazy
from lakewarden.engine.kernel.errors import Conflict, CorruptTable
from lakewarden.engine.metadata.encoding.records import is_initial
from lakewarden.engine.metadata.reading.files import MetadataListing
from lakewarden.engine.metadata.reading.partition import MetadataFileGroup, MetadataPartition
from lakewarden.engine.metadata.reading.validity import Validity
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.storage.side_by_side import asks_ahead, both
from lakewarden.engine.table.config import (
    METADATA_FOLDER,
    PROPERTIES_PATH,
    TableConfig,
    load_config,
    read_properties,
)
from lakewarden.engine.timeline.instants.instant import Action, InstantFiles, Layout, layout_of
from lakewarden.engine.timeline.timeline import (
    ActiveTimeline,
    Timeline,
    active_timeline,
    open_archive,
)

FILES = "files"
COLUMN_STATS = "column_stats"
PARTITION_STATS = "partition_stats"
BLOOM_FILTERS = "bloom_filters"
RECORD_INDEX = "record_index"
SECONDARY_INDEX_PREFIX = "secondary_index_"
EXPRESSION_INDEX_PREFIX = "expr_index_"
# The shard of a global record index; those of a partitioned one begin with it.
RECORD_SHARD = "record-index"
_NO_FILES = "missing_metadata_partition"
# Of blocks that lookups have unpacked, for all base files together.
_BLOCK_BYTES_MAX = 8 << 20
# Older tables have other rules for their metadata table.
_VERSION_MIN = 8


@dataclass(slots=True)
class KnownLayout:
    """How the metadata table's timeline was laid out when the table's properties said this.

    It has the version of its table, and no upgrade leaves the table's properties as they were.
    """

    properties: Mapping[str, str] | None = None
    layout: Layout | None = None
    active: ActiveTimeline | None = None


class MetadataTable:
    """The metadata table at one moment; `storage` is rooted in it, `root` in its table.

    Partitions that are read are listed once and then kept.
    """

    def __init__(
        self,
        root: Storage,
        config: TableConfig,
        data_timeline: Timeline,
        own_timeline: Timeline | None = None,
        known: KnownLayout | None = None,
        closed: ClosedFiles | None = None,
    ) -> None:
        self.root = root
        self.config = config
        self.storage = root.below(METADATA_FOLDER)
        self.data_timeline = data_timeline
        self._own_timeline = own_timeline
        self._known = known or KnownLayout()
        self._closed = closed
        self._groups: dict[str, tuple[MetadataFileGroup, ...]] = {}
        self._slices: dict[str, tuple[tuple[FileSlice, ...], tuple[DataFile, ...]]] = {}
        self._folded: dict[str, Mapping[FileGroupId, CompactionOperation]] = {}
        self._blocks = BlockCache(_BLOCK_BYTES_MAX)

    def again(self) -> "MetadataTable":
        """The same as it is now, the table's properties included."""
        return load_metadata_table(self.root, load_config(self.root), self)

    def partition(self, name: str) -> MetadataPartition:
        """A partition by name; one without any file group is corrupt, never empty."""
        return MetadataPartition(self._file_groups(name))

    def record_index(
        self, partitions: Collection[str] | None = None
    ) -> tuple[MetadataPartition, ...]:
        """The record index: one shard, or one for each partition of the table, or some of them.

        Shards for partitions come with these, so that a table without rows may have none yet.
        """
        try:
            groups = self._file_groups(RECORD_INDEX)
        except CorruptTable as error:
            if error.code != _NO_FILES or MetadataListing(self.partition(FILES)).partitions():
                raise
            return ()
        shards: dict[str, list[MetadataFileGroup]] = {}
        for group in groups:
            # `record-index-0007-0` is global; `record-index-<partition>-0000-0` is of a partition.
            shards.setdefault(group.file_id.rsplit("-", 2)[0], []).append(group)
        chosen = shards.keys() if partitions is None else _shards_for(partitions)
        return tuple(MetadataPartition(shards[name]) for name in sorted(shards.keys() & chosen))

    def is_unchanged(self) -> bool:
        """Whether the timeline of the metadata table is still the one that was read, if any was."""
        known: Timeline | None = self.__dict__.get("timeline")
        if known is None:
            return not self._groups
        return known.active.again().files == known.active.files

    @property
    def held_bytes(self) -> int:
        """About how much memory what was read takes as long as this value is kept."""
        return sum(group.held_bytes for groups in self._groups.values() for group in groups)

    def _file_groups(self, name: str) -> tuple[MetadataFileGroup, ...]:
        if name not in self._groups:
            self._groups[name] = self._open(name)
        return self._groups[name]

    def slices(self, name: str) -> tuple[FileSlice, ...]:
        """The newest slices of a partition's file groups; none where it has no files."""
        return self._listed(name)[0]

    def _listed(self, name: str) -> tuple[tuple[FileSlice, ...], tuple[DataFile, ...]]:
        if name not in self._slices:
            self._slices[name] = self._look_into(name)
        return self._slices[name]

    def _look_into(self, name: str) -> tuple[tuple[FileSlice, ...], tuple[DataFile, ...]]:
        # Only where calls wait for their answers; the order of the two means nothing.
        files, _ = both(self.storage, lambda: self._own_files(name), lambda: self.timeline)
        self.validity.check_whole(files, groups := file_groups(name, files, self._visibility))
        return tuple(group.latest_merged() for group in groups), files

    def _open(self, name: str) -> tuple[MetadataFileGroup, ...]:
        slices, files = self._listed(name)
        if not slices:
            raise CorruptTable(
                _NO_FILES,
                what=f"The metadata table's partition {name!r} has no files.",
                why="The table's properties list it as built.",
                now="Read with use_metadata=False, then rebuild the partition.",
                partition=name,
            )
        by_name = {file.name: file for file in files}
        return tuple(self._opened(one, by_name) for one in slices)

    def _opened(self, slice_: FileSlice, files: Mapping[str, DataFile]) -> MetadataFileGroup:
        return MetadataFileGroup(
            self.storage,
            slice_,
            self.validity.is_valid,
            self._recorded,
            self.timeline.completion_time,
            self._closed,
            partial(self._below, slice_, files),
            self._blocks,
        )

    def _below(self, slice_: FileSlice, files: Mapping[str, DataFile]) -> MetadataFileGroup | None:
        """What the base file of a slice was folded from, by the plan; None if some is gone."""
        operation = self._folded_at(slice_.base_instant).get(slice_.key)
        below = None if operation is None else slice_among(files, operation)
        return None if below is None else self._opened(below, files)

    def _folded_at(self, instant: str) -> Mapping[FileGroupId, CompactionOperation]:
        """What a compaction whose base files are seen has folded."""
        if instant not in self._folded:
            files = self.started(instant, Action.COMPACTION)
            path = files.requested.entry.path if files is not None and files.requested else ""
            content = self.storage.read_if_present(path) if path else None
            plan = CompactionPlan() if content is None else compaction.decode_plan(content, path)
            self._folded[instant] = {
                FileGroupId(one.partition_path or "", one.file_id or ""): one
                for one in plan.operations
            }
        return self._folded[instant]

    def _own_files(self, name: str) -> tuple[DataFile, ...]:
        """The files of a partition's own file groups.

        Java's clean of a table with an expression index makes groups of that index in the folders
        of others; hashing does not count them.
        """
        stranger = EXPRESSION_INDEX_PREFIX.replace("_", "-")
        own = name.startswith(EXPRESSION_INDEX_PREFIX)
        return tuple(
            file for file in self.files(name) if own or not file.file_id.startswith(stranger)
        )

    def files(self, partition: str) -> tuple[DataFile, ...]:
        """The data files of a partition as they lie there now."""
        return data_files(self.storage.list(partition).files)

    def partitions(self) -> tuple[str, ...]:
        """All partitions with a folder, whether the table's properties list them or not."""
        folders = (folder.rstrip("/") for folder in self.storage.list("").folders)
        return tuple(folder for folder in folders if folder != HOODIE_FOLDER)

    def deltacommit(self, instant: str) -> InstantFiles | None:
        """The files of the deltacommit of an instant of the data table, completed or not."""
        return self.started(instant, Action.DELTA_COMMIT)

    def rollback(self, instant: str) -> InstantFiles | None:
        """The files of a rollback that was started here."""
        return self.started(instant, Action.ROLLBACK)

    def started(self, requested: str, action: Action) -> InstantFiles | None:
        """The files of an instant that began as some action."""
        found = (
            group
            for group in self.timeline.active.files
            if group.instant.requested == requested and group.started_as is action
        )
        return next(found, None)

    def uncertain(self) -> tuple[str, ...]:
        """The instants that are completed here, but still pending on the data table."""
        pending = {one.requested for one in self.data_timeline.active.pending()}
        completed = self.timeline.active.completed()
        return tuple(one.requested for one in completed if one.requested in pending)

    @lazy
    def unheard_write(self) -> str | None:
        """A write without a deltacommit here: its writer did not know of the metadata table.

        Its files are missing in every partition. Writes from before this table are none of these,
        nor are those whose deltacommits may have left this timeline.
        """
        if self.config.version < _VERSION_MIN:
            return None
        own = self.timeline
        started = [
            one.completed or "" for one in own.active.completed() if is_initial(one.requested)
        ]
        since = min(started, default=None)
        for write in self.data_timeline.active.completed():
            is_later = since is not None and (write.completed or "") > since
            is_active = since is None and own.is_active_since(write.requested)
            if (is_later or is_active) and not own.is_completed(write.requested):
                return write.requested
        return None

    @lazy
    def timeline(self) -> Timeline:
        """The metadata table's own timeline."""
        if self._own_timeline is not None:
            return self._own_timeline
        known, properties = self._known, self.config.properties
        if known.layout is not None and known.properties == properties:
            timeline = Timeline.load(self.storage, known.layout, known.active)
        else:
            timeline = _own_timeline(self.root, self.config.layout)
            known.properties, known.layout = properties, timeline.active.layout
        known.active = timeline.active
        return timeline

    @property
    def layout(self) -> Layout:
        return self.timeline.active.layout

    @lazy
    def validity(self) -> Validity:
        """What counts of the metadata table."""
        return Validity.of(self.data_timeline, self.timeline)

    @lazy
    def _recorded(self) -> RecordedSizes:
        return RecordedSizes(self.timeline.active)

    @lazy
    def _visibility(self) -> Visibility:
        names_decide = self.config.version < 8
        return load_visibility(self.timeline.active, self.validity, names_decide=names_decide)


def _shards_for(partitions: Collection[str]) -> set[str]:
    """The shards of the record index that can have keys of some partitions of the table."""
    return {RECORD_SHARD, *(f"{RECORD_SHARD}-{escape_file_id(path)}" for path in partitions)}


def load_metadata_table(
    root: Storage, config: TableConfig, earlier: MetadataTable | None = None
) -> MetadataTable:
    """The metadata table as it is now, for writing to it.

    Its own timeline comes first: what is started there has started on the data's timeline before.
    """
    seen = None if earlier is None else earlier.timeline.active
    own = _own_timeline(root, config.layout, seen)
    data = None if earlier is None else earlier.data_timeline.active
    return MetadataTable(root, config, Timeline.load(root, config.layout, data), own)


def _refuse_dropped(root: Storage) -> None:
    """A metadata table that is missing is damage only where the table still says it has one."""
    config = load_config(root)
    if not (config.metadata_partitions or config.metadata_partitions_inflight):
        raise metadata_dropped()


def metadata_dropped() -> Conflict:
    return Conflict(
        "snapshot_outdated",
        what="The metadata table is gone.",
        why="Another process deleted it after this call started.",
        now="Make the call again: it sees the table as it is now.",
    )


def _own_timeline(root: Storage, likely: Layout, earlier: ActiveTimeline | None = None) -> Timeline:
    """The metadata table's timeline; it is looked for where the data's would be first."""
    storage = root.below(METADATA_FOLDER)

    def layout() -> Layout:
        said = read_properties(storage)
        if said is None:
            _refuse_dropped(root)
            said = parse_properties(storage.read(PROPERTIES_PATH), PROPERTIES_PATH)
        return layout_of(said)

    if not asks_ahead(storage):
        return Timeline.load(storage, layout(), earlier)
    found, listing = both(storage, layout, partial(storage.list, likely.folder))
    if found.folder != likely.folder:
        return Timeline.load(storage, found)
    active = active_timeline(storage, found, listing.files)
    return Timeline(active, open_archive(storage, found))
