"""`explain_plan`: what a plan takes and leaves out, each with the reason."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.services.inspection.state.explained import Explained
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    Options,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.declaring.words import one_word
from lakewarden.table import Table
from lakewarden.table_service_handle import TableServiceHandle


@procedure("explain_plan")
class ExplainPlan(Call):
    """What a pending plan is about, or what the next plan of a service would be."""

    table: TableName = None
    path: TablePath = None
    service: Annotated[str | None, "The service whose next plan is explained."] = None
    instant: Annotated[str | None, "The instant of a pending plan, instead of a service."] = None
    partition: Annotated[str | None, "Only this partition."] = None
    limit: Limit = None
    options: Options = None
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        partition: str
        file_id: Annotated[str | None, "None where it is about the partition as a whole."]
        verdict: Annotated[str, "chosen or left_out"]
        reason: str
        bytes: int
        log_files_count: int
        held_by_instant: Annotated[str | None, "The plan that has it."]

    def run(self, caller: Caller) -> Iterable[Row]:
        for one in self._explained(open_table(caller, self.table, self.path)):
            if self.partition in (None, one.partition):
                yield _row(one)

    def _explained(self, table: Table) -> tuple[Explained, ...]:
        if (self.instant is None) == (self.service is None):
            raise InvalidRequest(
                "bad_argument",
                what="The call needs either a service or an instant.",
                why="An instant means an existing plan, a service its next plan.",
                now="Add instant => '...' or service => 'compaction'.",
                argument="instant",
            )
        if self.instant is not None:
            return table.explain_plan(self.instant)
        return _handle(table, self.service or "").explain_next(options=self.options)


def _handle(table: Table, service: str) -> TableServiceHandle:
    handles = {
        "compaction": table.compaction,
        "log_compaction": table.log_compaction,
        "clustering": table.clustering,
    }
    return handles[one_word("service", service, handles)]


def _row(one: Explained) -> ExplainPlan.Row:
    return ExplainPlan.Row(
        partition=one.partition,
        file_id=one.file_id,
        verdict=one.verdict.value,
        reason=one.reason,
        bytes=one.bytes,
        log_files_count=one.log_files_count,
        held_by_instant=one.held_by_instant,
    )
