"""`run_indexing`: run plans of indexes that are built while writers continue."""

from collections.abc import Iterable

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import procedure
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.services.plan_call import PlanCall, PlanRow, plan_row
from lakewarden.service_calls import PlanOutcome, ServiceOperation


@procedure("run_indexing", is_mutating=True)
class RunIndexing(PlanCall):
    """Build what indexing plans ask for; until that is possible it says which plans wait."""

    def run(self, caller: Caller) -> Iterable[PlanRow]:
        order = self.order
        active = open_table(caller, self.table, self.path).timeline()
        pending = [one.requested for one in active.pending((Action.INDEXING,))]
        if order.operation is ServiceOperation.EXECUTE and not (pending or order.instants):
            return [plan_row(PlanOutcome(message="No indexing is pending."))]
        raise InvalidRequest(
            "unsupported_indexing",
            what="No index was built.",
            why="Lakewarden does not build indexes beside writers yet."
            + (f" {', '.join(pending)} wait for Java Hudi." if pending else ""),
            now="Use build_index while no writer is running, or let Java Hudi run the plan.",
            pending=tuple(pending),
        )
