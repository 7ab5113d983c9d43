"""`restore_to_instant`: take the table back to a write."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.savepoints.restored_row import restored_messages


@procedure("restore_to_instant", is_mutating=True)
class RestoreToInstant(Call):
    """Take the table back to a write whose files are all there; what came later is undone."""

    table: TableName = None
    instant_time: Annotated[str, "A completed write of the active timeline."]
    path: TablePath = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        restore_result: Annotated[bool, "Only a dry run gives false: with what is in the way."]
        restored_to: Annotated[str, "The newest write after the restore."]
        restore_instant: Annotated[str | None, "None in a dry run, and where nothing was undone."]
        undone_instants_count: int
        deleted_files_count: int
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        done = table.restore(self.instant_time, dry_run=self.dry_run)
        for message in restored_messages(done, dry_run=self.dry_run):
            yield self.Row(
                restore_result=not done.obstacles,
                restored_to=done.to,
                restore_instant=done.instant,
                undone_instants_count=len(done.undone),
                deleted_files_count=done.files_deleted,
                message=message,
            )
