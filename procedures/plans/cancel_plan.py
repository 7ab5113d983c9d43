"""`cancel_plan`: end a pending plan for good."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.transaction.cancel.cancellation import Cancellation
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table


@procedure("cancel_plan", is_mutating=True)
class CancelPlan(Call):
    """Stop a pending plan; once acknowledged it will never commit."""

    table: TableName = None
    instant: Annotated[str, "The instant of the plan."]
    reason: Annotated[str | None, "The reason, which its ledger keeps."] = None
    force: Annotated[bool, "Also a plan that was not scheduled as cancellable."] = False
    wait_seconds: Annotated[int, "How long to wait for an attempt to clean up."] = 0
    dry_run: DryRun = False
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant: str
        service: Annotated[str | None, "Whose plan it was."]
        outcome: Annotated[str, "cancelled, already_cancelled, already_committed or refused"]
        cleanup: Annotated[str | None, "Of its files: done, left_to_attempt or due"]
        held_by: Annotated[str | None, "The worker that is still running it."]
        removed_files_count: int
        reclaimed_bytes: int
        handed_back_partitions_count: Annotated[int, "The partitions that the next plan checks."]
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        done = open_table(caller, self.table, self.path).cancel(
            self.instant,
            self.reason,
            force=self.force,
            wait_seconds=self.wait_seconds,
            dry_run=self.dry_run,
        )
        yield _row(done)


def _row(done: Cancellation) -> CancelPlan.Row:
    return CancelPlan.Row(
        instant=done.instant,
        service=None if done.service is None else str(done.service),
        outcome=str(done.outcome),
        cleanup=None if done.cleanup is None else str(done.cleanup),
        held_by=None if done.held_by is None else str(done.held_by),
        removed_files_count=done.removed_files,
        reclaimed_bytes=done.reclaimed_bytes,
        handed_back_partitions_count=len(done.handed_back),
        message=done.message,
    )
