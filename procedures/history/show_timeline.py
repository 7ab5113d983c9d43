"""`show_timeline`: the instants of a table, with when each was asked for, started and completed."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from lakewarden.engine.services.inspection.history.history import state_word
from lakewarden.engine.services.inspection.history.steps import Steps, steps
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    RowLimit,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.moments import moment_of
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.history.arguments import EndTime, ShowArchived, StartTime
from lakewarden.procedures.history.spans import span_of


@procedure("show_timeline")
class ShowTimeline(Call):
    """The instants of a table, newest first; a row each, in the state it has come to."""

    table: TableName = None
    path: TablePath = None
    limit: Annotated[
        int,
        "No more rows than these, unless both start_time and end_time are given.",
        RowLimit(unless=("start_time", "end_time")),
    ] = 20
    show_archived: ShowArchived = False
    filter: Filter = ""
    start_time: StartTime = ""
    end_time: EndTime = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant_time: str
        action: str
        state: Annotated[str, "REQUESTED, INFLIGHT or COMPLETED"]
        requested_time: datetime | None
        inflight_time: Annotated[datetime | None, "When its inflight file was written."]
        completed_time: datetime | None
        timeline_type: Annotated[str, "ACTIVE or ARCHIVED"]
        rollback_info: Annotated[
            str | None, "The instant that it rolled back, or the rollback that undid it."
        ]

    def run(self, caller: Caller) -> Iterable[Row]:
        history = open_table(caller, self.table, self.path).history()
        span = span_of(self.start_time, self.end_time, history.zone)
        for one in steps(history, span, archived=self.show_archived):
            yield _row(one)


def _row(one: Steps) -> ShowTimeline.Row:
    return ShowTimeline.Row(
        instant_time=one.instant.requested,
        action=one.instant.action.value,
        state=state_word(one.instant),
        requested_time=moment_of(one.requested_ms),
        inflight_time=moment_of(one.inflight_ms),
        completed_time=moment_of(one.completed_ms),
        timeline_type="ARCHIVED" if one.is_archived else "ACTIVE",
        rollback_info=one.rollback,
    )
