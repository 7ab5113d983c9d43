"""`init_metadata_table`: give a metadata table the partitions that it lacks."""

from collections.abc import Iterable
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
from lakewarden.procedures.metadata.result_row import ResultRow


@procedure("init_metadata_table", is_mutating=True)
class InitMetadataTable(Call):
    """Add what the metadata table lacks of what a new one has; it must be there."""

    table: TableName = None
    read_only: Annotated[bool, "Only check that it can be opened."] = False
    dry_run: DryRun = False
    path: TablePath = None

    Row = ResultRow

    def run(self, caller: Caller) -> Iterable[ResultRow]:
        table = open_table(caller, self.table, self.path)
        present = [one.partition for one in table.metadata_sizes()]
        if self.read_only:
            yield ResultRow(result=f"It can be opened; it has {', '.join(present)}.")
            return
        made = table.create_metadata_table(dry_run=self.dry_run)
        verb = "Would add" if self.dry_run else "Added"
        done = f"{verb} {', '.join(made)}." if made else "Nothing to do: it is complete."
        yield ResultRow(result=done)
