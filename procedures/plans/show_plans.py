"""`show_plans`: what is planned or under way, and which process runs it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from lakewarden.engine.services.inspection.state.plans import PendingPlan
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.moments import moment_of
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.plans.words import chosen_service, chosen_state


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
                yield _row(plan)


def _row(plan: PendingPlan) -> ShowPlans.Row:
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
