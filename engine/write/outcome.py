"""The outcome of a write: what its files mean for the commit and for the metadata table.

Keeping the schema history: what a commit of an evolved table says of it, and leaves behind.

At the commit: what a write can only know under the lock, when no other write commits.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.slices import FileGroup, FileGroupId
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, Operation, WriteStat
from lakewarden.engine.formats.instant_metadata.replace import ReplaceCommitMetadata
from lakewarden.engine.index.identity import identity_changed, recorded_identity
from lakewarden.engine.index.kinds import Identity
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.metadata.entries.changes import Located, Removed, TableChange, ValueChange
from lakewarden.engine.metadata.reading.definitions import (
    READY,
    IndexDefinition,
    definitions_path,
    keeps_partition_statistics,
)
from lakewarden.engine.metadata.writing.definitions_file import mend_definitions
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.alteration import Alteration
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.evolved_history import (
    LATEST_SCHEMA_KEY,
    CarriedHistory,
    carried_history,
)
from lakewarden.engine.table.schema import (
    COMPLETED_SUFFIX,
    SCHEMA_FOLDER,
    SCHEMA_KEY,
    TableSchema,
    later_schema,
)
from lakewarden.engine.timeline.timeline import ActiveTimeline, Timeline
from lakewarden.engine.write.files.spec import WrittenFile


@dataclass(frozen=True, slots=True)
class HistoryToKeep:
    """The history that a write carries on; nothing for a table that never evolved by it."""

    carried: CarriedHistory | None = None
    # The file that it was read from.
    source: str = ""

    @property
    def said(self) -> Mapping[str, str]:
        """What the commit's metadata tells of it."""
        return {} if self.carried is None else {LATEST_SCHEMA_KEY: self.carried.latest}

    def keep(self, storage: Storage, timeline: Timeline, instant: str) -> None:
        """Leave it for the writes to come; it counts once the instant completes.

        Java takes it from an active instant, so that every commit leaves one. Those of archived
        instants go, but for the one that was read: this commit may still fail.
        """
        if self.carried is None:
            return
        start = timeline.first_active or ""
        for entry in storage.list(SCHEMA_FOLDER).files:
            if entry.name.partition(".")[0].partition("_")[0] < start and entry.path != self.source:
                storage.delete(entry.path)
        # When it was completed is asked by no one; a second attempt puts it into the same place.
        path = f"{SCHEMA_FOLDER}/{instant}_{instant}{COMPLETED_SUFFIX}"
        storage.put(path, self.carried.content)


def history_to_keep(
    state: Snapshot,
    before: TableSchema,
    after: TableSchema,
    instant: str,
    alteration: Alteration | None = None,
) -> HistoryToKeep:
    """What a write carries on; a service knows only the versions until its instant.

    A change of the columns that Java has no words for is refused.
    """
    history = state.history.until(instant)
    if alteration is not None:
        return HistoryToKeep(alteration.history(history, before, instant), history.path)
    carried = carried_history(history, before.columns, after.columns, instant)
    return HistoryToKeep(carried, history.path)


FileIds = Mapping[str, tuple[str, ...]]


def commit_metadata(
    files: Sequence[WrittenFile],
    operation: Operation,
    schema_text: str,
    *,
    extra: Mapping[str, str],
    replaced: FileIds | None = None,
) -> CommitMetadata:
    """The content of the completed instant; a replace commit where file groups were replaced."""
    stats: dict[str, list[WriteStat]] = {}
    for file in files:
        stats.setdefault(file.key.partition, []).append(file.stat)
    metadata = CommitMetadata(
        partition_to_write_stats={name: tuple(stats[name]) for name in sorted(stats)},
        extra_metadata={SCHEMA_KEY: schema_text, **extra},
        operation_type=operation,
    )
    if replaced is None:
        return metadata
    return ReplaceCommitMetadata(
        partition_to_write_stats=metadata.partition_to_write_stats,
        extra_metadata=metadata.extra_metadata,
        operation_type=operation,
        partition_to_replace_file_ids=dict(replaced),
    )


def table_change(
    instant: str,
    files: Sequence[WrittenFile],
    *,
    index_removals: Sequence[Removed] = (),
    stays: Sequence[Located] = (),
    valued: Sequence[ValueChange] = (),
    is_global: bool,
) -> TableChange:
    """What the metadata table has to learn of the files.

    `index_removals` are keys of file groups that were replaced, `stays` those that live on in one
    group though others lose them, `valued` what secondary indexes learn of both. A key that left
    one group and arrived in another has moved; for an index over all partitions it has not gone.
    """
    located = [Located(file.arrived, file.key) for file in files if len(file.arrived)] + [*stays]
    arrived: dict[str, list[pa.Array]] = {}
    for one in located:
        arrived.setdefault("" if is_global else one.home.partition, []).append(one.keys)
    left = [Removed(file.left, file.key.partition) for file in files if len(file.left)]
    return TableChange(
        instant=instant,
        new_files=tuple(one for file in files for one in file.files),
        located=tuple(located),
        valued=(*(one for file in files for one in file.valued), *valued),
        removed=tuple(
            gone
            for removed in (*left, *index_removals)
            if len((gone := _gone(removed, arrived, is_global=is_global)).keys)
        ),
    )


def _gone(removed: Removed, arrived: Mapping[str, list[pa.Array]], *, is_global: bool) -> Removed:
    elsewhere = arrived.get("" if is_global else removed.partition)
    if not elsewhere:
        return removed
    has_arrived = pc.is_in(removed.keys, value_set=pa.concat_arrays(elsewhere))
    return replace(removed, keys=removed.keys.filter(pc.invert(has_arrived)))


def live_files(
    groups: Iterable[FileGroup],
    files: Sequence[WrittenFile],
    replaced: FileIds,
    consumed: Mapping[FileGroupId, frozenset[str]] | None = None,
) -> dict[str, tuple[str, ...]]:
    """The files of the latest slices of each touched partition, once the write has completed.

    `groups` are the file groups of these partitions as they are before. A new base file takes the
    place of all that its group has; a service replaces what it has `consumed`, and nothing newer.
    """
    consumed = consumed or {}
    live: dict[FileGroupId, list[str]] = {}
    for group in groups:
        slice_ = group.latest_merged()
        base = [slice_.base_file.name] if slice_.base_file else []
        names = base + [log.name for log in slice_.log_files]
        gone = consumed.get(group.key, frozenset())
        live[group.key] = [name for name in names if name not in gone]
    for file in files:
        if file.stat.log_files is None and file.key not in consumed:
            live[file.key] = []
        live.setdefault(file.key, []).append(file.file.name)
    for partition, file_ids in replaced.items():
        for file_id in file_ids:
            live.pop(FileGroupId(partition, file_id), None)
    touched: dict[str, list[str]] = {file.key.partition: [] for file in files}
    touched |= {partition: [] for partition in replaced}
    for key in sorted(live):
        if key.partition in touched:
            touched[key.partition] += live[key]
    return {partition: tuple(names) for partition, names in touched.items()}


@dataclass(frozen=True, slots=True, eq=False)
class AtCommit:
    """Completes a write's change for the table as it is at the commit."""

    storage: Storage
    # The schema that the write has been prepared for, and evolved from; and what it has made of it.
    schema: TableSchema
    evolved: TableSchema
    files: Sequence[WrittenFile]
    replaced: FileIds
    # The indexes that the write has gathered statistics and keys for.
    indexes: Sequence[IndexDefinition] = ()
    # The identity by which the write has found keys, if it has.
    identity: Identity | None = None
    # What Java needs to know of names that columns had.
    history: HistoryToKeep = field(default_factory=HistoryToKeep)

    def __call__(self, change: TableChange, snapshot: Snapshot) -> TableChange:
        self._refuse_other_identity(change.instant, snapshot.config)
        self._refuse_other_schema(change.instant, snapshot.schema())
        self._refuse_hidden_schema(change.instant, snapshot.timeline.active)
        change = as_known(change, self.indexes, snapshot.definitions)
        path = definitions_path(snapshot.config)
        mend_definitions(self.storage, path, snapshot.stored_definitions)
        self.history.keep(self.storage, snapshot.timeline, change.instant)
        if not keeps_partition_statistics(snapshot.config):
            return change
        partitions = {file.key.partition for file in self.files} | set(self.replaced)
        groups = snapshot.file_groups(
            snapshot.visibility(), tuple(sorted(partitions)), use_metadata=True
        )
        return replace(change, live_files=live_files(groups, self.files, self.replaced))

    def _refuse_other_identity(self, instant: str, now: TableConfig) -> None:
        """Rows that go where another index wants them would be there twice."""
        recorded = recorded_identity(now)
        if recorded is None or self.identity is None:
            return
        if not recorded.equals_in_effect(self.identity, is_partitioned=now.is_partitioned):
            raise identity_changed(instant)

    def _refuse_other_schema(self, instant: str, now: TableSchema) -> None:
        """The newest write's schema is the table's: an older one would take columns away."""
        if now.avro_text == self.schema.avro_text:
            return
        raise Conflict(
            "write_conflict",
            what=f"The write {instant} was prepared for an older schema of the table.",
            why="Another writer changed the columns after this one started.",
            now="Nothing was changed. Write again.",
            instant=instant,
        )

    def _refuse_hidden_schema(self, instant: str, active: ActiveTimeline) -> None:
        """The newest write's schema is the table's: columns of a write before it would not show."""
        if self.evolved.avro_text == self.schema.avro_text:
            return
        later = later_schema(active, instant)
        if later is not None:
            raise Conflict(
                "write_conflict",
                what=f"The write {instant} changes the columns of the table.",
                why=f"The write {later} began later with the columns from before, and came first.",
                now="Nothing was changed. Write again.",
                instant=instant,
            )


def as_known(
    change: TableChange, known: Sequence[IndexDefinition], now: Sequence[IndexDefinition]
) -> TableChange:
    """The change as the indexes of now take it, of which those that are known were gathered for.

    An index that is being built does without, since its builder catches up with what it lacks. One
    that was built meanwhile has nothing of these files, and readers would miss them.
    """
    shapes = {_shape(one) for one in known}
    new = [one for one in now if _shape(one) not in shapes]
    ready = [one.name for one in new if one.state == READY]
    if ready:
        raise Conflict(
            "write_conflict",
            what=f"The write {change.instant} would not update the index {ready[0]!r}.",
            why="The index was built or rebuilt after the write started.",
            now="Nothing was changed. Write again.",
            instant=change.instant,
            index=ready[0],
        )
    return replace(change, unknown=frozenset(one.partition for one in new))


def _shape(index: IndexDefinition) -> tuple[object, ...]:
    options = frozenset(index.options.items())
    return index.partition, index.function, frozenset(index.columns), options
