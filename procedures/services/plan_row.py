"""The row that compaction and log compaction give for each plan."""

from dataclasses import dataclass
from typing import Annotated

from lakewarden.procedures.services.orders import state_word
from lakewarden.service_calls import PlanOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    timestamp: Annotated[str | None, "The instant of the plan; none where there is none."]
    operation_size: Annotated[int, "How many file groups the plan has."]
    state: Annotated[str | None, "REQUESTED, INFLIGHT, COMPLETED or ROLLED BACK"]
    rows_written_count: int | None
    files_count: int | None
    written_bytes: int | None
    seconds: float | None
    message: Annotated[str, "What the call did, or why it did nothing."]


def plan_row(one: PlanOutcome) -> PlanRow:
    done = one.execution
    return PlanRow(
        timestamp=one.instant,
        operation_size=one.operations,
        state=state_word(one.state),
        rows_written_count=None if done is None else done.rows_written,
        files_count=None if done is None else done.files,
        written_bytes=None if done is None else done.bytes_written,
        seconds=None if done is None else sum(done.seconds.values()),
        message=one.message,
    )
