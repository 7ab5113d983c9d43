"""`build_index`: build an index, at once or in steps."""

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
    """Build an index beside writers, at once or in steps; one that is there is left as it is.

    From the schedule on, writes report to the index; queries use it once it is executed. A build
    whose process died is resumed by execute or resume: base files that are finished are kept.
    """

    index_name: IndexName
    table: TableName = None
    index_type: IndexTypeName = None
    columns: IndexColumns = None
    options: IndexOptions = None
    op: Annotated[str, "schedule, execute, scheduleAndExecute or resume."] = _AT_ONCE
    dry_run: DryRun = False
    path: TablePath = None

    Row = BuiltRow

    def run(self, caller: Caller) -> Iterable[BuiltRow]:
        done = open_table(caller, self.table, self.path).build_index(
            self.index_name,
            self.columns or (),
            self.index_type,
            self.options,
            op=one_word("op", self.op, _OPERATIONS),
            dry_run=self.dry_run,
        )
        yield built_row(done)
