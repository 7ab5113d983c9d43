"""`show_plans`, `explain_plan` and `cancel_plan`: what is planned, why, and how it ends."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.services.inspection.state.plans import Explained, PendingPlan
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.instants.state import InstantState
from lakewarden.engine.transaction.cancel.cancel import Cancellation
from lakewarden.engine.transaction.state.context import Service
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    Filter,
    Limit,
    Options,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.texts import moment_of, one_word
from lakewarden.table import Table
from lakewarden.table_service_handle import TableServiceHandle

_OTHERS = (Action.CLEAN, Action.ROLLBACK, Action.RESTORE, Action.INDEXING)
SERVICES = (*(one.value for one in Service), *(one.value for one in _OTHERS))


def chosen_service(given: str | None) -> str | None:
    """The service that is meant; none where all are."""
    return None if given is None else one_word("service", given, SERVICES)


def chosen_state(given: str | None) -> Callable[[InstantState], bool]:
    """Whether a state is the one that is meant; its first word stands for all that begin so."""
    if given is None:
        return lambda state: True
    words = [state.value for state in InstantState]
    first = dict.fromkeys(word.partition(",")[0] for word in words)
    meant = one_word("state", given, (*first, *words))
    return lambda state: state.value == meant or state.value.partition(",")[0] == meant


@procedure("show_plans")
class ShowPlans(Call):
    """The plans of table services that have not ended, oldest first; a row each."""

    table: TableName = None
    path: TablePath = None
    service: Annotated[str | None, "Only this service's, such as compaction or clean."] = None
    state: Annotated[str | None, "Only those in this state, such as requested or inflight."] = None
    limit: Limit = None
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant: str
        service: str
        state: str
        cancellable: Annotated[bool, "Whether it may be cancelled without force."]
        partitions_count: int
        file_groups_count: int
        input_bytes: Annotated[int | None, "As its planner estimated."]
        attempt: Annotated[int | None, "The number of the newest attempt."]
        owner: str | None
        host: str | None
        step: Annotated[str | None, "The current step of the attempt."]
        done_ratio: Annotated[float | None, "The progress, from 0 to 1."]
        started_at: datetime | None
        last_beat_at: datetime | None
        expires_at: Annotated[datetime | None, "When it counts as dead without a new heartbeat."]
        missing_partitions_count: Annotated[int, "Those left to the next plan."]
        blocks: Annotated[str, "The services that it holds back, separated by commas."]
        requested_at: datetime | None
        age_seconds: float | None

    def run(self, caller: Caller) -> Iterable[Row]:
        service, is_in_state = chosen_service(self.service), chosen_state(self.state)
        for plan in open_table(caller, self.table, self.path).plans():
            if service in (None, plan.service) and is_in_state(plan.state):
                yield _shown_plan(plan)


def _shown_plan(plan: PendingPlan) -> ShowPlans.Row:
    return ShowPlans.Row(
        instant=plan.instant,
        service=plan.service,
        state=plan.state.value,
        cancellable=plan.cancellable,
        partitions_count=plan.partitions_count,
        file_groups_count=plan.file_groups_count,
        input_bytes=plan.input_bytes,
        attempt=plan.attempt,
        owner=plan.owner,
        host=plan.host,
        step=plan.step,
        done_ratio=plan.done_ratio,
        started_at=moment_of(plan.started_at_ms),
        last_beat_at=moment_of(plan.last_heartbeat_at_ms),
        expires_at=moment_of(plan.expires_at_ms),
        missing_partitions_count=plan.missing_partitions_count,
        blocks=", ".join(plan.blocks),
        requested_at=moment_of(plan.requested_at_ms),
        age_seconds=plan.age_seconds,
    )


@procedure("explain_plan")
class ExplainPlan(Call):
    """What a pending plan is about, or what the next plan of a service would be."""

    table: TableName = None
    path: TablePath = None
    service: Annotated[str | None, "The service whose next plan is explained."] = None
    instant: Annotated[str | None, "The instant of a pending plan, instead of a service."] = None
    partition: Annotated[str | None, "Only this partition."] = None
    limit: Limit = None
    options: Options = None
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        partition: str
        file_id: Annotated[str | None, "None where it is about the partition as a whole."]
        verdict: Annotated[str, "chosen or left_out"]
        reason: str
        bytes: int
        log_files_count: int
        held_by_instant: Annotated[str | None, "The plan that has it."]

    def run(self, caller: Caller) -> Iterable[Row]:
        for one in self._explained(open_table(caller, self.table, self.path)):
            if self.partition in (None, one.partition):
                yield _step_row(one)

    def _explained(self, table: Table) -> tuple[Explained, ...]:
        if (self.instant is None) == (self.service is None):
            raise InvalidRequest(
                "bad_argument",
                what="The call needs either a service or an instant.",
                why="An instant means an existing plan, a service its next plan.",
                now="Add instant => '...' or service => 'compaction'.",
                argument="instant",
            )
        if self.instant is not None:
            return table.explain_plan(self.instant)
        return _handle(table, self.service or "").explain_next(options=self.options)


def _handle(table: Table, service: str) -> TableServiceHandle:
    handles = {
        "compaction": table.compaction,
        "log_compaction": table.log_compaction,
        "clustering": table.clustering,
    }
    return handles[one_word("service", service, handles)]


def _step_row(one: Explained) -> ExplainPlan.Row:
    return ExplainPlan.Row(
        partition=one.partition,
        file_id=one.file_id,
        verdict=one.verdict.value,
        reason=one.reason,
        bytes=one.bytes,
        log_files_count=one.log_files_count,
        held_by_instant=one.held_by_instant,
    )


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
        yield _cancelled_row(done)


def _cancelled_row(done: Cancellation) -> CancelPlan.Row:
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
