"""`show_compaction`: the compactions of a table, planned, under way and done."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.inspection.history.history import state_word
from lakewarden.engine.services.inspection.history.plans import compaction_plans
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table


@procedure("show_compaction")
class ShowCompaction(Call):
    """The compactions on the active timeline, newest first; a row each."""

    table: TableName = None
    path: TablePath = None
    limit: Limit = 20
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        timestamp: Annotated[str, "Its instant."]
        operation_size: Annotated[int | None, "The file slices in its plan; null if it is torn."]
        state: Annotated[str, "REQUESTED, INFLIGHT or COMPLETED"]

    def run(self, caller: Caller) -> Iterable[Row]:
        for instant, plan in compaction_plans(open_table(caller, self.table, self.path).history()):
            yield self.Row(
                timestamp=instant.requested,
                operation_size=None if plan is None else len(plan.operations),
                state=state_word(instant),
            )
