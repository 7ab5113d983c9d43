"""The past: the table as some instants left it, and what one of them has changed.

A build reads the table as of its base instant, though writers go on; and of a write that has not
reported to it, it finds out from the write's files what that would have said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.slices import FileGroupId, replaced_by
from lakewarden.engine.formats.instant_metadata import clean, commit
from lakewarden.engine.formats.instant_metadata import replace as replace_payload
from lakewarden.engine.metadata.entries.changes import Located, Removed, TableChange
from lakewarden.engine.metadata.entries.row_indexes import RowIndexes, value_changes
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.services.indexing.present import PresentTable
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action, Instant
from lakewarden.engine.timeline.timeline import Timeline
from lakewarden.engine.write.replaced_rows import rows_with_keys

# Services that put the same keys into the same file groups.
_KEEP_KEYS = frozenset({Action.COMPACTION, Action.LOG_COMPACTION})


@dataclass(frozen=True, slots=True)
class Until:
    """The instants of a timeline that had completed, by when they were requested or completed."""

    timeline: Timeline = field(repr=False)
    # Those requested later don't count.
    requested_until: str | None = None
    # Those completed later don't; with `is_before` nor does what completed at that time.
    completed_until: str | None = None
    is_before: bool = False

    def completion_time(self, requested: str) -> str | None:
        if self.requested_until is not None and requested > self.requested_until:
            return None
        time = self.timeline.completion_time(requested)
        if time is None or self.completed_until is None:
            return time
        is_late = time > self.completed_until or (self.is_before and time == self.completed_until)
        return None if is_late else time

    def is_completed(self, requested: str) -> bool:
        if self.completed_until is not None:
            return self.completion_time(requested) is not None
        is_in_reach = self.requested_until is None or requested <= self.requested_until
        return is_in_reach and self.timeline.is_completed(requested)


@dataclass(frozen=True, slots=True)
class PastChanges:
    """What completed instants would have said to indexes, from their files."""

    snapshot: Snapshot
    executor: Executor = field(repr=False)
    # The columns of statistics, and whether places of keys are wanted.
    columns: tuple[str, ...] = ()
    tracks_keys: bool = False
    indexes: RowIndexes = field(default_factory=RowIndexes)

    def of(self, instant: Instant) -> TableChange:
        """The change of a completed write or clean; one that says nothing of any other action."""
        if instant.action is Action.CLEAN:
            return self._of_clean(instant)
        if not instant.action.is_write:
            return TableChange(instant=instant.requested)
        return self._of_write(instant)

    def of_partitions(
        self, touched: Mapping[Instant, tuple[str, ...]]
    ) -> dict[tuple[str, ...], TableChange]:
        """Of writes that have said what is in their files: which files their partitions have.

        The instants are in the order of completion; the answer is by the partitions that some of
        them have touched. Files that were there after any of them count for all: if the newest
        are rolled back, what is said at the others is wide enough for what is there then.
        """
        instants = list(touched)
        partitions = sorted({name for own in touched.values() for name in own})
        found: dict[str, set[str]] = {name: set() for name in partitions}
        for at in {instants[0], instants[-1]}:
            present = PresentTable(self.snapshot, self.executor, self._after(at))
            for name, live in _live_files(present, partitions).items():
                found[name].update(live)
        own = {one.requested for one in instants}
        for name, files in self.snapshot.source(use_metadata=True).files(partitions).items():
            found[name].update(file.name for file in files if file.instant in own)
        return {
            names: TableChange(
                instant=instants[-1].requested,
                live_files={name: tuple(sorted(found[name])) for name in names},
            )
            for names in dict.fromkeys(touched.values())
        }

    def touched(self, instant: Instant) -> tuple[str, ...]:
        """The partitions in which a write has files, or has replaced some."""
        if not instant.action.is_write:
            return ()
        replaced = {one.partition for one in self._replaced(instant)}
        return tuple(sorted({*self._partitions(instant), *replaced}))

    def _after(self, instant: Instant) -> Until:
        return Until(self.snapshot.timeline, completed_until=instant.completed)

    def _of_clean(self, instant: Instant) -> TableChange:
        active = self.snapshot.timeline.active
        metadata = clean.decode(active.read(instant), active.path(instant))
        deleted = {
            partition: tuple(
                path.rpartition("/")[2]
                for path in (*one.success_delete_files, *one.delete_path_patterns)
            )
            for partition, one in metadata.partition_metadata.items()
        }
        return TableChange(instant=instant.requested, deleted_files=deleted)

    def _of_write(self, instant: Instant) -> TableChange:
        before = Until(self.snapshot.timeline, completed_until=instant.completed, is_before=True)
        replaced = self._replaced(instant)
        present = PresentTable(self.snapshot, self.executor, self._after(instant))
        new = present.files(
            self.columns, self.indexes, self._partitions(instant), instant.requested
        )
        partitions = sorted({file.partition for file in new} | {one.partition for one in replaced})
        change = TableChange(instant=instant.requested, new_files=new)
        if self._started_as(instant) not in _KEEP_KEYS:
            earlier = PresentTable(self.snapshot, self.executor, before)
            touched = {*replaced, *self._groups(instant, partitions)}
            change = self._with_rows(change, earlier, present, partitions, touched)
        return replace(change, live_files=_live_files(present, partitions))

    def _with_rows(
        self,
        change: TableChange,
        earlier: PresentTable,
        present: PresentTable,
        partitions: Sequence[str],
        touched: set[FileGroupId],
    ) -> TableChange:
        """What has become of keys and values in some file groups."""
        if self.tracks_keys:
            located, removed = _difference(
                _keys(earlier, partitions, touched), _keys(present, partitions, touched)
            )
            change = replace(change, located=located, removed=removed)
        if self.indexes.secondary:
            columns = self.indexes.value_columns
            was = _rows(earlier, partitions, touched, columns)
            now = _rows(present, partitions, touched, columns)
            change = replace(change, valued=value_changes(self.indexes.secondary, was, now))
        return change

    def _partitions(self, instant: Instant) -> tuple[str, ...]:
        active = self.snapshot.timeline.active
        decode = (
            replace_payload.decode if instant.action is Action.REPLACE_COMMIT else commit.decode
        )
        metadata = decode(active.read(instant), active.path(instant))
        return tuple(sorted(metadata.partition_to_write_stats))

    def _replaced(self, instant: Instant) -> frozenset[FileGroupId]:
        if instant.action is not Action.REPLACE_COMMIT:
            return frozenset()
        active = self.snapshot.timeline.active
        return frozenset(replaced_by(active.read(instant), active.path(instant)))

    def _groups(self, instant: Instant, partitions: Sequence[str]) -> frozenset[FileGroupId]:
        files = self.snapshot.source(use_metadata=True).files(partitions)
        return frozenset(
            FileGroupId(partition, file.file_id)
            for partition, names in files.items()
            for file in names
            if file.instant == instant.requested
        )

    def _started_as(self, instant: Instant) -> Action:
        files = self.snapshot.timeline.active.files_of(instant)
        return instant.action if files is None else files.started_as


def _live_files(table: PresentTable, partitions: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The live files of each of some partitions, which may have none."""
    live = table.live_files(partitions)
    return {one: live.get(one, ()) for one in partitions}


def _keys(
    table: PresentTable, partitions: Sequence[str], groups: set[FileGroupId]
) -> dict[FileGroupId, pa.Array]:
    """The keys of some file groups."""
    slices = [one for one in table.slices(partitions) if one.key in groups]
    return {one.home: one.keys for one in table.executor.map(table.keys_of, slices)}


def _rows(
    table: PresentTable,
    partitions: Sequence[str],
    groups: set[FileGroupId],
    columns: Sequence[str],
) -> pa.Table | None:
    """The keys of some file groups with some columns; None if there are none."""
    slices = [one for one in table.slices(partitions) if one.key in groups]
    parts = list(table.executor.map(lambda one: rows_with_keys(table.state, one, columns), slices))
    return pa.concat_tables(parts, promote_options="permissive") if parts else None


def _difference(
    before: dict[FileGroupId, pa.Array], after: dict[FileGroupId, pa.Array]
) -> tuple[tuple[Located, ...], tuple[Removed, ...]]:
    """The keys that came to file groups, and those that left them and came to no other one."""
    nothing = pa.array([], pa.string())
    located, removed = [], []
    for home in sorted({*before, *after}):
        had, has = before.get(home, nothing), after.get(home, nothing)
        came = has.filter(pc.invert(pc.is_in(has, value_set=had)))
        left = had.filter(pc.invert(pc.is_in(had, value_set=has)))
        if len(came):
            located.append(Located(came, home))
        if len(left):
            removed.append(Removed(left, home.partition))
    return tuple(located), tuple(removed)
