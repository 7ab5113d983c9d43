"""`build_index`: build an index, all at once for now."""

from collections.abc import Iterable
from typing import Annotated

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.declaring.texts import one_word
from lakewarden.procedures.indexes.arguments import (
    IndexColumns,
    IndexName,
    IndexOptions,
    IndexTypeName,
)
from lakewarden.procedures.indexes.built import BuiltRow, built_row

_AT_ONCE = "scheduleAndExecute"
_OPERATIONS = ("schedule", "execute", _AT_ONCE, "resume")


@procedure("build_index", is_mutating=True)
class BuildIndex(Call):
    """Build an index while the table has no writes; one that is there is left as it is."""

    index_name: IndexName
    table: TableName = None
    index_type: IndexTypeName = None
    columns: IndexColumns = None
    options: IndexOptions = None
    op: Annotated[str, "scheduleAndExecute; building beside writes is not there yet."] = _AT_ONCE
    dry_run: DryRun = False
    path: TablePath = None

    Row = BuiltRow

    def run(self, caller: Caller) -> Iterable[BuiltRow]:
        operation = one_word("op", self.op, _OPERATIONS)
        if operation != _AT_ONCE:
            raise _not_yet(operation)
        done = open_table(caller, self.table, self.path).create_index(
            self.index_name,
            self.columns or (),
            self.index_type,
            self.options,
            if_not_exists=True,
            dry_run=self.dry_run,
        )
        yield built_row(done)


def _not_yet(operation: str) -> InvalidRequest:
    return InvalidRequest(
        "index_op_not_built_yet",
        what=f"build_index cannot {operation} yet.",
        why="Lakewarden builds an index in one go, while no writer is running.",
        now=f"Use op => '{_AT_ONCE}'.",
        operation=operation,
    )
