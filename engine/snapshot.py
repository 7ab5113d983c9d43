"""The snapshot: a table at one moment, from which everything about it is decided.

Properties and timeline are what was loaded; schema, files and indexes are derived from these when
asked for, and never from anything newer. The metadata table is read as of the timeline; a listing
is proved afterwards by a second look at the timeline, for a clean may have run in between.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import pyarrow as pa

from lakewarden.engine.file_groups.listing import (
    FileSource,
    PartitionFiles,
    RecordedListing,
    RecordedSizes,
    StorageListing,
)
from lakewarden.engine.file_groups.slices import (
    ClosedFiles,
    Completions,
    FileGroup,
    Visibility,
    file_groups,
    load_visibility,
)
from lakewarden.engine.kernel.caches import lazy
from lakewarden.engine.kernel.clock import Zone
from lakewarden.engine.kernel.errors import Conflict, CorruptTable, Defect
from lakewarden.engine.metadata.entries.statistics import PartitionMemory
from lakewarden.engine.metadata.reading.definitions import (
    IndexDefinition,
    StoredDefinitions,
    definitions_of,
    definitions_path,
    stored_definitions,
)
from lakewarden.engine.metadata.reading.files import MetadataListing
from lakewarden.engine.metadata.reading.key_cache import KeyCache
from lakewarden.engine.metadata.reading.table import FILES, KnownLayout, MetadataTable
from lakewarden.engine.metadata.writing.builds import builds_on
from lakewarden.engine.metadata.writing.deltacommit import Weight
from lakewarden.engine.run.executor import OneAtATime
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.storage.side_by_side import asks_ahead, both, together
from lakewarden.engine.table.config import TableConfig, load_config
from lakewarden.engine.table.schema import (
    SchemaHistory,
    TableSchema,
    load_schema_history,
    resolve_schema,
)
from lakewarden.engine.timeline.instants.instant import Instant, InstantFiles, Layout
from lakewarden.engine.timeline.ledger.ledger import Ledger
from lakewarden.engine.timeline.next_time import TimeSource
from lakewarden.engine.timeline.removals import may_have_removed, outdated
from lakewarden.engine.timeline.roll_forward import RolledForward
from lakewarden.engine.timeline.timeline import (
    UNDER_WAY,
    ActiveTimeline,
    Contents,
    Timeline,
    load_active,
    open_archive,
)

# Cleans end one by one, and a snapshot takes less time than what leads to an end.
SNAPSHOTS_MAX = 5
# What a process keeps of a snapshot for its next look at a table that has not changed.
_KEPT_BYTES_MAX = 32 << 20
# What the names of a file group take, as values of Python.
_GROUP_BYTES = 1 << 10
# What a snapshot names may be gone when it is read: then it is not the newest any more.
OUTDATED = frozenset({"missing_file", "missing_metadata_partition", "snapshot_outdated"})

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Properties and timeline at one moment; everything else is derived when asked for."""

    storage: Storage = field(repr=False)
    config: TableConfig
    timeline: Timeline
    # The ledgers of what is pending, as far as they were loaded.
    ledgers: Mapping[str, Ledger] = field(default_factory=dict)
    # What was committed and not published; it is now.
    rolled_forward: tuple[RolledForward, ...] = ()
    # Pending plans that would give way, and so do not count.
    preemptible: frozenset[str] = frozenset()
    # No clean can be planned while the table's lock is held, so a listing needs no proof.
    is_locked: bool = False
    next_times: TimeSource | None = None
    metadata_layout: KnownLayout = field(default_factory=KnownLayout, repr=False)
    closed: ClosedFiles = field(default_factory=ClosedFiles, repr=False)

    @property
    def layout(self) -> Layout:
        return self.config.layout

    @property
    def zone(self) -> Zone:
        """The zone in which the table's instants are written."""
        return self.timeline.active.layout.zone

    @property
    def times(self) -> TimeSource:
        """The times that come next, for a snapshot that was loaded by a writer."""
        if self.next_times is None:
            raise Defect(
                "no_times",
                what="A snapshot for reading was asked for an instant time.",
                why="It has no clock.",
            )
        return self.next_times

    @lazy
    def metadata(self) -> MetadataTable:
        """The metadata table as of this snapshot's timeline."""
        known, closed = self.metadata_layout, self.closed
        return MetadataTable(self.storage, self.config, self.timeline, known=known, closed=closed)

    @property
    def closed_logs(self) -> ClosedFiles | None:
        """What is kept of logs in slices; in version 6 others append to them."""
        return self.closed if self.layout.version > 1 else None

    @lazy
    def stored_definitions(self) -> StoredDefinitions:
        """What the file of index definitions says."""
        return stored_definitions(self.storage, definitions_path(self.config))

    @lazy
    def definitions(self) -> tuple[IndexDefinition, ...]:
        """All metadata partitions of the table as indexes, with what is defined about them."""
        planned = [name for _, names in builds_on(self.timeline.active) for name in names]
        return definitions_of(self.config, self.stored_definitions.records, planned)

    @lazy
    def history(self) -> SchemaHistory:
        return load_schema_history(self.storage, self.timeline)

    @lazy
    def recorded(self) -> RecordedSizes:
        return RecordedSizes(self.timeline.active)

    def ledger(self, instant: str) -> Ledger:
        """The ledger of a pending instant; one without entries where there is none."""
        return self.ledgers.get(instant, Ledger(instant))

    def pending(self, requested: str) -> InstantFiles | None:
        """The files of the pending instant of that time; a savepoint at it is none."""
        for instant in self.timeline.active.with_time(requested):
            if not instant.is_completed and instant.action in UNDER_WAY:
                return self.timeline.active.files_of(instant)
        return None

    def completed_write(self, requested: str) -> Instant | None:
        """The completed write of that time."""
        found = self.timeline.active.with_time(requested)
        return next((i for i in found if i.is_completed and i.action.is_write), None)

    def schema(self, as_of: str | None = None) -> TableSchema:
        return resolve_schema(self.timeline.active, self.config, as_of, self.timeline.archive)

    def reader_schema(self, as_of: str | None = None) -> pa.Schema:
        """The columns a reader shows: meta columns first, where the table fills them."""
        schema = self.schema(as_of)
        return schema.with_meta() if self.config.has_meta_fields else schema.columns

    def source(self, *, use_metadata: bool) -> FileSource:
        """Where files come from.

        A table is listed without the `files` partition, and where that lacks a write: one whose
        writer did not know of the metadata table.
        """
        if use_metadata and self.config.has_metadata(FILES):
            # Opened first: that loads the timeline and the listing of it side by side.
            files = self.metadata.partition(FILES)
            if self.metadata.unheard_write is None:
                return MetadataListing(files)
        listing = RecordedListing(StorageListing(self.storage), self.recorded)
        return listing if self.is_locked else _ProvedListing(listing, self._prove)

    def visibility(
        self, as_of: str | None = None, completions: Completions | None = None
    ) -> Visibility:
        return load_visibility(
            self.timeline.active,
            completions or self.timeline,
            names_decide=self.config.version < 8,
            as_of=as_of,
        )

    @lazy
    def newest_groups(self) -> tuple[FileGroup, ...]:
        """All live file groups, as the metadata table says."""
        return self.file_groups(self.visibility(), None, use_metadata=True)

    def file_groups(
        self, visibility: Visibility, partitions: tuple[str, ...] | None, *, use_metadata: bool
    ) -> tuple[FileGroup, ...]:
        """The live file groups of the given partitions, of all without any."""
        files = self.source(use_metadata=use_metadata).files(partitions)
        return tuple(
            group
            for partition in sorted(files)
            for group in file_groups(partition, files[partition], visibility)
        )

    def is_whole(self) -> bool:
        """Whether all files of this snapshot are there still; costs a listing of the timeline."""
        active = self.timeline.active
        return not may_have_removed(active, active.again())

    def has_same_metadata(self) -> bool:
        """Whether nothing has happened in the metadata table since this snapshot looked there."""
        metadata: MetadataTable | None = self.__dict__.get("metadata")
        return metadata is None or metadata.is_unchanged()

    @property
    def held_bytes(self) -> int:
        """About how much memory takes what was derived so far."""
        metadata: MetadataTable | None = self.__dict__.get("metadata")
        groups: tuple[FileGroup, ...] = self.__dict__.get("newest_groups", ())
        return _GROUP_BYTES * len(groups) + (0 if metadata is None else metadata.held_bytes)

    def read_ahead(self, *, definitions: bool = True) -> None:
        """Read at once what a query or a write is going to ask for, one thing after the other."""
        if not asks_ahead(self.storage):
            return
        wanted: list[Callable[[], object]] = [self._newest_commit, lambda: self.history]
        if definitions:
            wanted.append(lambda: self.stored_definitions)
        if self.config.has_metadata(FILES):
            wanted.append(lambda: self.metadata.partition(FILES).read_ahead())
        # What is damaged, or gone by now, is said where it is needed.
        with suppress(CorruptTable):
            together(self.storage, wanted)

    def _newest_commit(self) -> None:
        """What the schema is going to be read from."""
        completed = self.timeline.active.completed()
        if completed:
            self.timeline.active.is_torn(completed[-1])

    def _prove(self) -> None:
        """Refuse what was listed if files of this snapshot may have gone meanwhile."""
        if not self.is_whole():
            raise outdated("A clean or restore changed the table while its folders were listed.")


@dataclass(frozen=True, slots=True)
class _ProvedListing:
    """A listing that is looked at twice: whatever is listed was there for the snapshot."""

    listing: FileSource
    prove: Callable[[], None]

    def partitions(self) -> tuple[str, ...]:
        found = self.listing.partitions()
        self.prove()
        return found

    def files(self, partitions: Sequence[str] | None = None) -> PartitionFiles:
        found = self.listing.files(partitions)
        self.prove()
        return found


# Properties and timeline that belong together.
Loaded = tuple[TableConfig, Timeline]


@dataclass(slots=True)
class Memory:
    """What earlier looks at a table have read, and need not be read again.

    Completed instants never change. The properties may: they are only compared.
    """

    config: TableConfig | None = None
    # What the last read derived, as long as it is small: as good as new until the next commit.
    kept: Snapshot | None = field(default=None, repr=False)
    kept_bytes_max: int = _KEPT_BYTES_MAX
    completed: Contents = field(default_factory=Contents, repr=False)
    active: ActiveTimeline | None = field(default=None, repr=False)
    # Of the record index, for batches of streams.
    keys: KeyCache = field(default_factory=KeyCache, repr=False)
    # Of the metadata table, as it was after the last write.
    weight: Weight | None = None
    # Of the statistics of its partitions.
    partitions: PartitionMemory = field(default_factory=PartitionMemory, repr=False)
    metadata_layout: KnownLayout = field(default_factory=KnownLayout, repr=False)
    closed: ClosedFiles = field(default_factory=ClosedFiles, repr=False)
    # When this process last put in order what others had left.
    tidied_ms: int | None = None
    # The compaction of the metadata table by this process.
    compaction: OneAtATime = field(default_factory=OneAtATime, repr=False)
    # The services that run beside its writes.
    services: OneAtATime = field(default_factory=OneAtATime, repr=False)

    def forget_large(self) -> None:
        """Keep the last snapshot no longer if what was derived from it takes much memory."""
        if self.kept is not None and self.kept.held_bytes > self.kept_bytes_max:
            self.kept = None


def load_snapshot(storage: Storage, memory: Memory | None = None) -> Snapshot:
    """The table as it is now, for reading: one object and one listing.

    Where nothing has happened since the last time, it is the snapshot of then, with all that was
    derived from it: neither the table's timeline nor that of its metadata table has changed.
    """
    memory = memory or Memory()
    kept = memory.kept
    if kept is None or not asks_ahead(storage):
        config, active = _properties_and_active(storage, memory)
        is_same = kept is not None and _is_of(kept, config, active) and kept.has_same_metadata()
    else:
        ask = partial(_properties_and_active, storage, memory)
        (config, active), is_same = both(storage, ask, kept.has_same_metadata)
        is_same = is_same and _is_of(kept, config, active)
    if kept is not None and is_same:
        return kept
    known = memory.metadata_layout
    timeline = Timeline(active, open_archive(storage, config.layout))
    snapshot = Snapshot(storage, config, timeline, metadata_layout=known, closed=memory.closed)
    memory.kept = snapshot
    return snapshot


def _is_of(kept: Snapshot, config: TableConfig, active: ActiveTimeline) -> bool:
    is_same = kept.timeline.active.entries == active.entries
    return is_same and kept.config.properties == config.properties


def load_table(storage: Storage, memory: Memory) -> Loaded:
    """Properties and timeline as they are now: the timeline is not older than the properties."""
    config, active = _properties_and_active(storage, memory)
    return config, Timeline(active, open_archive(storage, config.layout))


def _properties_and_active(storage: Storage, memory: Memory) -> tuple[TableConfig, ActiveTimeline]:
    """Properties, and a timeline that is not older than these; it may move in between."""
    try:
        return _listed(storage, memory)
    except Conflict as error:
        if error.code not in OUTDATED:
            raise
        memory.config = memory.active = None
        return _listed(storage, memory)


def _listed(storage: Storage, memory: Memory) -> tuple[TableConfig, ActiveTimeline]:
    """Properties and timeline as one look finds them.

    Where earlier ones are known, both are asked for side by side: properties that say the same
    after as before have said so when the timeline was listed.
    """
    known, active = memory.config, None
    if known is None or not asks_ahead(storage):
        config = load_config(storage)
    else:
        listed = partial(load_active, storage, known.layout, memory.active)
        config, active = both(storage, partial(load_config, storage), listed)
        if config.properties != known.properties:
            active = None
    if active is None:
        active = load_active(storage, config.layout, memory.active)
    memory.config, memory.active = config, active
    active.share_contents(memory.completed)
    return config, active


def retrying_view(load: Callable[[], Snapshot], view: Callable[[Snapshot], ValueT]) -> ValueT:
    """What a snapshot shows; it is taken anew while others remove what it is about.

    What is missing each time is damage.
    """
    for _ in range(SNAPSHOTS_MAX - 1):
        try:
            return view(load())
        except (CorruptTable, Conflict) as error:
            if error.code not in OUTDATED:
                raise
    return view(load())
