"""`lakewarden_missing_partitions`: what pending plans leave to the next ones."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.inspection.state.plans import Verdict
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import Call, TablePath, procedure
from lakewarden.procedures.declaring.opening import open_table


@procedure("lakewarden_missing_partitions")
class MissingPartitions(Call):
    """The partitions that pending plans leave to the next ones."""

    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant: Annotated[str, "Of the plan."]
        service: str
        partition: str
        reason: str

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, None, self.path)
        for plan in table.plans():
            if not plan.missing_partitions_count:
                continue
            for one in table.explain_plan(plan.instant):
                if one.verdict is Verdict.SKIPPED:
                    yield self.Row(
                        instant=plan.instant,
                        service=plan.service,
                        partition=one.partition,
                        reason=one.reason,
                    )
