"""`create_index`: build an index on the rows that a table has."""

from collections.abc import Iterable, Mapping
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
from lakewarden.procedures.indexes.arguments import (
    IndexColumns,
    IndexName,
    IndexOptions,
    IndexTypeName,
)
from lakewarden.procedures.indexes.built import BuiltRow, built_row


@procedure("create_index", is_mutating=True)
class CreateIndex(Call):
    """Build an index on the rows that there are; from then on writes keep it true.

    No write may run meanwhile. The build holds the table's lock and makes one metadata commit.
    """

    index_name: IndexName
    table: TableName = None
    columns: IndexColumns = None
    index_type: IndexTypeName = None
    if_not_exists: Annotated[bool, "Do nothing if the index exists."] = False
    options: IndexOptions = None
    column_options: Annotated[
        Mapping[str, str] | None, "Text after the columns: options of an expression."
    ] = None
    dry_run: DryRun = False
    path: TablePath = None

    Row = BuiltRow

    def run(self, caller: Caller) -> Iterable[BuiltRow]:
        done = open_table(caller, self.table, self.path).create_index(
            self.index_name,
            self.columns or (),
            self.index_type,
            self.options,
            column_options=self.column_options,
            if_not_exists=self.if_not_exists,
            dry_run=self.dry_run,
        )
        yield built_row(done)
