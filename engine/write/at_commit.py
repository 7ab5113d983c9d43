"""At the commit: what a write can only know under the lock, when nobody else commits any more."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.metadata.changes import TableChange
from lakewarden.engine.metadata.table import PARTITION_STATS
from lakewarden.engine.plans.moment import Moment
from lakewarden.engine.read.table_state import TableState
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.schema import TableSchema
from lakewarden.engine.write.outcome import FileIds, live_files
from lakewarden.engine.write.written import WrittenFile


@dataclass(frozen=True, slots=True, eq=False)
class AtCommit:
    """Completes a write's change for the table as it is at the commit."""

    storage: Storage
    # The schema that the write has been prepared for, and evolved from.
    schema: TableSchema
    files: Sequence[WrittenFile]
    replaced: FileIds

    def __call__(self, change: TableChange, moment: Moment) -> TableChange:
        state = TableState(self.storage, moment.config, moment.timeline)
        self._refuse_other_schema(change.instant, state.schema())
        if not moment.config.has_metadata(PARTITION_STATS):
            return change
        partitions = {file.key.partition for file in self.files} | set(self.replaced)
        groups = state.file_groups(state.visibility(), tuple(sorted(partitions)), use_metadata=True)
        return replace(change, live_files=live_files(groups, self.files, self.replaced))

    def _refuse_other_schema(self, instant: str, now: TableSchema) -> None:
        """The newest write's schema is the table's: an older one would take columns away."""
        if now.avro_text == self.schema.avro_text:
            return
        raise Conflict(
            "write_conflict",
            what=f"The write {instant} was prepared for another schema than the table has now.",
            why="Another writer has changed the columns since this one began.",
            now="Nothing was changed. Write again: the rows are then fitted to the new schema.",
            instant=instant,
        )
