"""The metadata table: Hudi's own table about a table, at `.hoodie/metadata`.

It is read as of a timeline of the data: a write commits here first, so what is pending on that
timeline does not count, nor does anything that began after it was looked at.
"""

from lakewarden.engine.formats.properties import parse_properties
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.kernel.lazy import lazy
from lakewarden.engine.metadata.file_group import MetadataFileGroup
from lakewarden.engine.metadata.files import MetadataListing
from lakewarden.engine.metadata.partition import MetadataPartition
from lakewarden.engine.metadata.validity import Validity
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import METADATA_FOLDER, PROPERTIES_PATH, TableConfig
from lakewarden.engine.timeline.layouts import layout_of
from lakewarden.engine.timeline.timeline import Timeline
from lakewarden.engine.view.listing import data_files
from lakewarden.engine.view.recorded import RecordedSizes
from lakewarden.engine.view.slices import FileSlice, Visibility, file_groups
from lakewarden.engine.view.visibility import load_visibility

FILES = "files"
COLUMN_STATS = "column_stats"
PARTITION_STATS = "partition_stats"
BLOOM_FILTERS = "bloom_filters"
RECORD_INDEX = "record_index"
SECONDARY_INDEX_PREFIX = "secondary_index_"
EXPRESSION_INDEX_PREFIX = "expr_index_"
_NO_FILES = "missing_metadata_partition"


class MetadataTable:
    """Opens partitions of a table's metadata table; each is listed once and then kept."""

    def __init__(self, storage: Storage, config: TableConfig, data_timeline: Timeline) -> None:
        self._storage = storage.below(METADATA_FOLDER)
        self._data_timeline = data_timeline
        self._names_decide = config.version < 8
        self._groups: dict[str, tuple[MetadataFileGroup, ...]] = {}

    def partition(self, name: str) -> MetadataPartition:
        """A partition by name; one without any file group is corrupt, never empty."""
        return MetadataPartition(self._file_groups(name))

    def record_index(self) -> tuple[MetadataPartition, ...]:
        """The record index: one shard, or one for each partition of the table.

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
        return tuple(MetadataPartition(shards[name]) for name in sorted(shards))

    def _file_groups(self, name: str) -> tuple[MetadataFileGroup, ...]:
        if name not in self._groups:
            self._groups[name] = self._open(name)
        return self._groups[name]

    def slices(self, name: str) -> tuple[FileSlice, ...]:
        """The newest slices of a partition's file groups; none where it has no files."""
        files = data_files(self._storage.list(name).files)
        self._validity.check_whole(files, groups := file_groups(name, files, self._visibility))
        return tuple(group.latest_merged() for group in groups)

    def _open(self, name: str) -> tuple[MetadataFileGroup, ...]:
        slices = self.slices(name)
        if not slices:
            raise CorruptTable(
                _NO_FILES,
                what=f"The metadata table's partition {name!r} has no files.",
                why="The table's properties list it as built.",
                now="Read with use_metadata=False, and rebuild the partition.",
                partition=name,
            )
        is_valid, recorded = self._validity.is_valid, self._recorded
        return tuple(MetadataFileGroup(self._storage, one, is_valid, recorded) for one in slices)

    @lazy
    def timeline(self) -> Timeline:
        """The metadata table's own timeline."""
        properties = parse_properties(self._storage.read(PROPERTIES_PATH), PROPERTIES_PATH)
        return Timeline.load(self._storage, layout_of(properties))

    @lazy
    def _recorded(self) -> RecordedSizes:
        return RecordedSizes(self.timeline.active)

    @lazy
    def _validity(self) -> Validity:
        return Validity.of(self._data_timeline, self.timeline)

    @lazy
    def _visibility(self) -> Visibility:
        return load_visibility(
            self.timeline.active, self._validity, names_decide=self._names_decide
        )
