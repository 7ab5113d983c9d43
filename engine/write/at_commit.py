"""At the commit: what a write can only know under the lock, when no other write commits."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lakewarden.engine.index.identity import identity_changed, recorded_identity
from lakewarden.engine.index.kinds import Identity
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.metadata.entries.changes import TableChange
from lakewarden.engine.metadata.reading.definitions import (
    READY,
    IndexDefinition,
    definitions_path,
    keeps_partition_statistics,
)
from lakewarden.engine.metadata.writing.definitions_file import mend_definitions
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.schema import TableSchema
from lakewarden.engine.write.files.written import WrittenFile
from lakewarden.engine.write.outcome import FileIds, live_files
from lakewarden.engine.write.schema_keeping import HistoryToKeep


@dataclass(frozen=True, slots=True, eq=False)
class AtCommit:
    """Completes a write's change for the table as it is at the commit."""

    storage: Storage
    # The schema that the write has been prepared for, and evolved from.
    schema: TableSchema
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
