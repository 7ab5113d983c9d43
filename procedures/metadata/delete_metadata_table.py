"""`delete_metadata_table`: remove a metadata table with all of its indexes."""

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


@procedure("delete_metadata_table", is_mutating=True)
class DeleteMetadataTable(Call):
    """Remove the metadata table with all indexes, while no write runs; readers then list files."""

    table: TableName = None
    dry_run: DryRun = False
    path: TablePath = None

    Row = ResultRow

    def run(self, caller: Caller) -> Iterable[ResultRow]:
        gone = open_table(caller, self.table, self.path).delete_metadata_table(dry_run=self.dry_run)
        verb = "Would remove" if self.dry_run else "Removed"
        done = f"{verb} the metadata table with {', '.join(gone)}." if gone else "There is none."
        yield ResultRow(result=done)
