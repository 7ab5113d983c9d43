"""`rollback_to_instant`: take a write back."""

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
from lakewarden.procedures.savepoints.restored_row import dropped_sentence


@procedure("rollback_to_instant", is_mutating=True)
class RollbackToInstant(Call):
    """Take a write back: one that has failed, or the newest one that has completed."""

    table: TableName = None
    instant_time: Annotated[str, "The instant of the write."]
    path: TablePath = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        rollback_result: Annotated[bool, "True: it is gone; otherwise it is an error."]
        instant_time: str
        action: str
        rollback_instant: Annotated[str | None, "None in a dry run."]
        deleted_files_count: int
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        done = table.rollback(self.instant_time, dry_run=self.dry_run)
        earlier = "Another process has rolled it back, or had started to."
        what = earlier if done.is_taken_over else f"{done.files_deleted} files."
        yield self.Row(
            rollback_result=True,
            instant_time=done.instant,
            action=done.action.value,
            rollback_instant=done.rollback or None,
            deleted_files_count=done.files_deleted,
            message=f"{what}{dropped_sentence(done.metadata_dropped)}",
        )
