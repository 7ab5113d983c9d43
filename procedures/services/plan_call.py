"""What the calls that schedule and run plans have in common."""

from abc import ABC
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import Call, DryRun, Options, TableName, TablePath
from lakewarden.procedures.services.arguments import Cancellable, Instants, Op, PlanLimit
from lakewarden.procedures.services.orders import order_of
from lakewarden.procedures.services.plan_row import PlanRow, plan_row
from lakewarden.service_calls import ServiceCall, ServiceRunner
from lakewarden.table_service_handle import TableServiceHandle


@dataclass(frozen=True, kw_only=True)
class PlanCall(Call, ABC):
    """A call about plans, with Hudi's arguments of a compaction."""

    op: Op = None
    table: TableName = None
    path: TablePath = None
    timestamp: Annotated[str | None, "One plan to execute, as in older versions of Hudi."] = None
    options: Options = None
    instants: Instants = None
    limit: PlanLimit = None
    cancellable: Cancellable = None
    dry_run: DryRun = False

    Row = PlanRow

    @property
    def order(self) -> ServiceCall:
        """What is wanted; one plan that is named by its time is executed."""
        return order_of(
            self.op if self.instants or not self.timestamp else "execute",
            self.instants or self.timestamp,
            limit=self.limit,
            cancellable=self.cancellable,
            dry_run=self.dry_run,
            options=self.options,
        )

    def executed(self, caller: Caller, handle: TableServiceHandle) -> Iterable[PlanRow]:
        """Run the call by a service; a row for each plan."""
        runner = ServiceRunner(handle, caller.spark, caller.check_interrupted)
        return map(plan_row, runner.run_call(self.order))
