"""`refresh_index`: build an index anew."""

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
from lakewarden.procedures.indexes.arguments import IndexName
from lakewarden.procedures.indexes.built import BuiltRow, built_row


@procedure("refresh_index", is_mutating=True)
class RefreshIndex(Call):
    """Build an index anew as it was defined; readers use the old one until the new one is ready.

    One that is not ready, or has lost file groups, is dropped first.
    """

    index_name: IndexName
    table: TableName = None
    dry_run: DryRun = False
    path: TablePath = None

    Row = BuiltRow

    def run(self, caller: Caller) -> Iterable[BuiltRow]:
        table = open_table(caller, self.table, self.path)
        yield built_row(table.refresh_index(self.index_name, dry_run=self.dry_run))
