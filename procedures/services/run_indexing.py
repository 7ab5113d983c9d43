"""`run_indexing`: carry out plans of indexes that are built while writers go on."""

from collections.abc import Iterable
from typing import Annotated

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.timeline.instant import Action
from lakewarden.procedures.caller import Caller
from lakewarden.procedures.declaration import Call, DryRun, Options, TableName, TablePath, procedure
from lakewarden.procedures.opening import open_table
from lakewarden.procedures.services.arguments import Cancellable, Instants, Op, PlanLimit
from lakewarden.procedures.services.orders import order_of
from lakewarden.procedures.services.plan_row import PlanRow, plan_row
from lakewarden.service_orders import Fulfilled, Operation


@procedure("run_indexing", is_mutating=True)
class RunIndexing(Call):
    """Build what indexing plans ask for; until that is possible it says which plans wait."""

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
            self.op,
            self.instants or self.timestamp,
            limit=self.limit,
            cancellable=self.cancellable,
            dry_run=self.dry_run,
            options=self.options,
        )
        active = open_table(caller, self.table, self.path).timeline()
        pending = [one.requested for one in active.pending((Action.INDEXING,))]
        if order.operation is Operation.EXECUTE and not (pending or order.instants):
            return [plan_row(Fulfilled(message="No indexing is pending."))]
        raise InvalidRequest(
            "unsupported_indexing",
            what="No index was built.",
            why="Indexing beside writers is not implemented."
            + (f" {', '.join(pending)} wait for Java Hudi." if pending else ""),
            now="Use build_index while nobody writes, or let Java Hudi carry the plan out.",
            pending=tuple(pending),
        )
