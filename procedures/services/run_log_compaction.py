"""`run_log_compaction`: put many small logs of a file group into one."""

from collections.abc import Iterable
from typing import Annotated

from lakewarden.procedures.caller import Caller
from lakewarden.procedures.declaration import Call, DryRun, Options, TableName, TablePath, procedure
from lakewarden.procedures.opening import open_table
from lakewarden.procedures.services.arguments import Cancellable, Instants, Op, PlanLimit
from lakewarden.procedures.services.orders import order_of
from lakewarden.procedures.services.plan_row import PlanRow, plan_row
from lakewarden.service_orders import Carrier


@procedure("run_log_compaction", is_mutating=True)
class RunLogCompaction(Call):
    """Put many small logs of a file group into one; a row for each plan.

    Without op a plan is made, and carried out together with those that are pending, oldest first.
    A call waits for no trigger unless its options name one. The newest plan's row stands first.
    """

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

    def run(self, caller: Caller) -> Iterable[PlanRow]:
        order = order_of(
            self.op if self.instants or not self.timestamp else "execute",
            self.instants or self.timestamp,
            limit=self.limit,
            cancellable=self.cancellable,
            dry_run=self.dry_run,
            options=self.options,
        )
        door = open_table(caller, self.table, self.path).log_compaction
        carrier = Carrier(door, caller.spark, caller.check_interrupted)
        return map(plan_row, carrier.fulfil(order))
