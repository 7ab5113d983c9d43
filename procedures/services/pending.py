"""`show_inflight_commits` and the calls that end what has died."""

from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic
from typing import Annotated

from lakewarden.engine.transaction.reset import ResetOutcome
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    Filter,
    Limit,
    TableName,
    TablePath,
    procedure,
)


@procedure("show_inflight_commits")
class ShowInflightCommits(Call):
    """The pending instants, writes and plans, oldest first."""

    table: TableName = None
    min_age_minutes: Annotated[int, "Only those of this age or older."] = 0
    path: TablePath = None
    limit: Limit = None
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant_time: str
        action: Annotated[str, "The action it started as."]
        state: Annotated[str, "REQUESTED or INFLIGHT"]
        age_seconds: float | None
        held_by: Annotated[str | None, "The writer whose heartbeat is alive."]

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        for one in table.inflight_instants(self.min_age_minutes):
            yield self.Row(
                instant_time=one.instant,
                action=one.action.value,
                state=one.state,
                age_seconds=one.age_seconds,
                held_by=one.held_by,
            )


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


@procedure("sweep", is_mutating=True)
class Sweep(Call):
    """Remove late files of instants that were rolled back, once no attempt at them can live."""

    table: TableName = None
    path: TablePath = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant: Annotated[str | None, "None where no sweep is due."]
        deleted_files_count: int
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        swept = open_table(caller, self.table, self.path).sweep(dry_run=self.dry_run)
        for one in swept:
            message = f"{one.files_deleted} late files."
            yield self.Row(
                instant=one.instant, deleted_files_count=one.files_deleted, message=message
            )
        if not swept:
            message = "No sweep is due: nothing was rolled back, or it is too early."
            yield self.Row(instant=None, deleted_files_count=0, message=message)
