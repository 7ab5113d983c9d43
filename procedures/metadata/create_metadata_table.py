"""`create_metadata_table`: give a table the metadata table that a new one would have."""

from collections.abc import Iterable

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


@procedure("create_metadata_table", is_mutating=True)
class CreateMetadataTable(Call):
    """Make the metadata table of a table that has none, from its files, while no write runs."""

    table: TableName = None
    dry_run: DryRun = False
    path: TablePath = None

    Row = ResultRow

    def run(self, caller: Caller) -> Iterable[ResultRow]:
        table = open_table(caller, self.table, self.path)
        present = table.config.metadata_partitions
        if present:
            yield ResultRow(result=f"It already exists, with {', '.join(present)}.")
            return
        made = table.create_metadata_table(dry_run=self.dry_run)
        verb = "Would create" if self.dry_run else "Created"
        yield ResultRow(result=f"{verb} the metadata table with {', '.join(made)}.")
