"""`run_rollback_inflight_tableservice`: take a plan back that was started and left."""

from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic
from typing import Annotated

from lakewarden.engine.transaction.reset import ResetOutcome
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table

_MESSAGES = {
    ResetOutcome.REQUESTED_AGAIN: "The plan is pending again.",
    ResetOutcome.CANCELLED: "The plan is cancelled; the next plan takes its file groups.",
    ResetOutcome.NOT_STARTED: "No worker has started it; there is nothing to roll back.",
    ResetOutcome.COMPLETED: "It has completed in the meantime.",
}


@procedure("run_rollback_inflight_tableservice", is_mutating=True)
class RunRollbackInflightTableservice(Call):
    """Roll back what dead attempts at a plan have written; one with a live attempt is refused."""

    table: TableName = None
    path: TablePath = None
    pending_instant: Annotated[str, "The instant of the plan."]
    delete_request_instant_file: Annotated[bool, "The plan goes as well."] = False
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant: str
        time_cost: Annotated[str, "Milliseconds, as a text as in Hudi."]
        outcome: Annotated[str, "requested_again, cancelled, not_begun or completed"]
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        table, began = open_table(caller, self.table, self.path), monotonic()
        done = table.reset_plan(
            self.pending_instant,
            removes_plan=self.delete_request_instant_file,
            dry_run=self.dry_run,
        )
        yield self.Row(
            instant=done.instant,
            time_cost=str(round((monotonic() - began) * 1000)),
            outcome=done.outcome.value,
            message=_MESSAGES[done.outcome],
        )
