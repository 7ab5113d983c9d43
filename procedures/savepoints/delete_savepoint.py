"""`delete_savepoint`: let savepoints go."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.savepoints.chosen import chosen_savepoints
from lakewarden.procedures.savepoints.tried import each_tried
from lakewarden.table import Table


@procedure("delete_savepoint", is_mutating=True)
class DeleteSavepoint(Call):
    """Let savepoints go: the cleans to come remove what they have kept; a row each."""

    table: TableName = None
    instant_time: Annotated[str, "Savepoints, separated by commas; the newest without any."] = ""
    path: TablePath = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        delete_savepoint_result: Annotated[bool, "Whether it is gone."]
        savepoint_time: str
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        chosen = chosen_savepoints(table, self.instant_time)
        return each_tried(
            caller, chosen, lambda instant: self._deleted(table, instant), self._failed
        )

    def _deleted(self, table: Table, instant: str) -> Row:
        done = table.delete_savepoint(instant, dry_run=self.dry_run)
        message = f"It has kept {done.files} files."
        return self.Row(delete_savepoint_result=True, savepoint_time=instant, message=message)

    def _failed(self, instant: str, error: LakewardenError) -> Row:
        message = str(error)
        return self.Row(delete_savepoint_result=False, savepoint_time=instant, message=message)
