"""`show_inflight_commits`: what is pending, and how old it is."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table


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
