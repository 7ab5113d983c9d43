"""`run_indexing`: run plans of indexes that are built beside writers."""

from collections.abc import Iterable
from typing import Annotated

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import procedure
from lakewarden.procedures.indexes.indexes import IndexColumns, IndexOptions, IndexTypeName
from lakewarden.procedures.services.plan_call import PlanCall, PlanRow, plan_row
from lakewarden.service_calls import PlanOutcome, ServiceOperation

_WORDS = {
    ServiceOperation.SCHEDULE: "schedule",
    ServiceOperation.SCHEDULE_AND_EXECUTE: "scheduleAndExecute",
}


@procedure("run_indexing", is_mutating=True)
class RunIndexing(PlanCall):
    """Carry out pending plans of index builds, ours or Java's; or schedule one for an index.

    With an index name, op says whether it is scheduled, executed, or both. Without one, or with
    instants, plans that are pending are executed, oldest first.
    """

    index_name: Annotated[str | None, "The index to schedule or build."] = None
    index_type: IndexTypeName = None
    columns: IndexColumns = None
    index_options: IndexOptions = None

    def run(self, caller: Caller) -> Iterable[PlanRow]:
        order = self.order
        table = open_table(caller, self.table, self.path)
        pending = table.pending_indexing()
        word = _WORDS.get(order.operation)
        if self.index_name is not None and word is not None:
            done = table.build_index(
                self.index_name,
                self.columns or (),
                self.index_type,
                self.index_options,
                op=word,
                dry_run=order.dry_run,
            )
            return [plan_row(PlanOutcome(instant=done.instant, operations=1, message=done.message))]
        if order.operation is ServiceOperation.SCHEDULE:
            raise _nameless()
        chosen = (order.instants or pending)[: order.limit]
        if not chosen:
            return [plan_row(PlanOutcome(message="No indexing is pending."))]
        if order.dry_run:
            message = "Its index would be built."
            return [plan_row(PlanOutcome(instant=one, message=message)) for one in chosen]
        return [
            plan_row(
                PlanOutcome(
                    instant=one.instant,
                    operations=len(one.partitions),
                    message=f"Built: {', '.join(one.partitions)}.",
                )
            )
            for one in table.run_indexing(chosen, spark=table.workers_for_builds(caller.spark))
        ]


def _nameless() -> InvalidRequest:
    return InvalidRequest(
        "bad_argument",
        what="run_indexing cannot schedule without an index.",
        why="A plan says which index is to be built.",
        now="Give index_name, and columns and index_type where the name does not tell.",
        argument="index_name",
    )
