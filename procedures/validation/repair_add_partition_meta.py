"""`repair_add_partition_meta`: mark folders as partitions again."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.file_groups.file_names import PARTITION_METADATA
from lakewarden.engine.write.files.partition_files import ensure_partition
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table


@procedure("repair_add_partition_meta", is_mutating=True)
class RepairAddPartitionMeta(Call):
    """Put Hudi's file into partitions that have lost it; a row for each partition.

    Without it, a listing of the table does not find the partition. It only tells what it would do
    unless `dry_run => false`.
    """

    table: TableName = None
    dry_run: DryRun = True
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        partition_path: str
        metadata_is_present: Annotated[str, "Yes or No"]
        action: Annotated[str, "None, or Repaired"]

    def run(self, caller: Caller) -> Iterable[Row]:
        state = open_table(caller, self.table, self.path).state()
        completed = state.timeline.active.completed()
        for partition in state.source(use_metadata=True).partitions():
            folder = f"{partition}/" if partition else ""
            names = {one.name for one in state.storage.list(partition).files}
            # Some tables have it as a file of their base format.
            is_there = any(name.startswith(PARTITION_METADATA) for name in names)
            if not is_there and not self.dry_run:
                ensure_partition(state.storage, partition, completed[-1].requested)
            yield self.Row(
                partition_path=folder.rstrip("/"),
                metadata_is_present="Yes" if is_there else "No",
                action="None" if is_there or self.dry_run else "Repaired",
            )
