"""`run_compaction` and `run_log_compaction`: schedule and run what merges logs."""

from collections.abc import Iterable

from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import procedure
from lakewarden.procedures.services.plan_call import PlanCall, PlanRow


@procedure("run_compaction", is_mutating=True)
class RunCompaction(PlanCall):
    """Merge the logs of file groups into new base files; a row for each plan.

    Without op it schedules a plan and runs it with the pending ones, oldest first.
    A call waits for no trigger unless its options name one. The newest plan's row stands first.
    """

    def run(self, caller: Caller) -> Iterable[PlanRow]:
        return self.executed(caller, open_table(caller, self.table, self.path).compaction)


@procedure("run_log_compaction", is_mutating=True)
class RunLogCompaction(PlanCall):
    """Put many small logs of a file group into one; a row for each plan.

    Without op it schedules a plan and runs it with the pending ones, oldest first.
    A call waits for no trigger unless its options name one. The newest plan's row stands first.
    """

    def run(self, caller: Caller) -> Iterable[PlanRow]:
        return self.executed(caller, open_table(caller, self.table, self.path).log_compaction)
