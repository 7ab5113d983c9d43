"""`cleanup_stale_inflight_commits`: roll back what was started long ago and left."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table


@procedure("cleanup_stale_inflight_commits", is_mutating=True)
class CleanupStaleInflightCommits(Call):
    """Take back plans that were started and left, and writes if asked; what is alive stays."""

    table: TableName = None
    allowed_inflight_interval_minutes: Annotated[int, "Younger ones are left alone."] = 180
    include_ingestion_commits: Annotated[bool, "Failed writes as well."] = False
    dry_run: DryRun = False
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant_time: Annotated[str | None, "None where nothing is stale."]
        action: str | None
        rollback_status: Annotated[bool | None, "Whether it succeeded; none in a dry run."]
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        ends = open_table(caller, self.table, self.path).end_stale(
            self.allowed_inflight_interval_minutes,
            with_writes=self.include_ingestion_commits,
            dry_run=self.dry_run,
        )
        for one in ends:
            yield self.Row(
                instant_time=one.instant,
                action=one.action.value,
                rollback_status=one.is_done,
                message=one.message,
            )
        if not ends:
            message = "No instant of that age is stale."
            yield self.Row(instant_time=None, action=None, rollback_status=None, message=message)
