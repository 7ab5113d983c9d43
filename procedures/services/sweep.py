"""`sweep`: remove what paused attempts may have left behind."""

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


@procedure("sweep", is_mutating=True)
class Sweep(Call):
    """Remove late files of instants that were rolled back, once no attempt at them can live."""

    table: TableName = None
    path: TablePath = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant: Annotated[str | None, "None where no sweep is due."]
        deleted_files_count: int
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        swept = open_table(caller, self.table, self.path).sweep(dry_run=self.dry_run)
        for one in swept:
            message = f"{one.files_deleted} late files."
            yield self.Row(
                instant=one.instant, deleted_files_count=one.files_deleted, message=message
            )
        if not swept:
            message = "No sweep is due: nothing was rolled back, or it is too early."
            yield self.Row(instant=None, deleted_files_count=0, message=message)
