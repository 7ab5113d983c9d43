"""`show_blockers`: what holds services back, and what to do about it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.inspection.state.blockers import Blocker
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


@procedure("show_blockers")
class ShowBlockers(Call):
    """The instants that hold back clean, archive or compaction, each with the call that helps."""

    table: TableName = None
    path: TablePath = None
    limit: Limit = None
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        blocked_service: str
        instant: Annotated[str | None, "None where settings contradict each other."]
        action: str
        state: str
        age_seconds: float | None
        owner: str | None
        remedy: Annotated[str, "A CALL to copy; empty where waiting is all that helps."]
        reason: str

    def run(self, caller: Caller) -> Iterable[Row]:
        return map(_row, open_table(caller, self.table, self.path).blockers())


def _row(one: Blocker) -> ShowBlockers.Row:
    return ShowBlockers.Row(
        blocked_service=one.blocked_service,
        instant=one.instant,
        action=one.action,
        state=one.state,
        age_seconds=one.age_seconds,
        owner=one.owner,
        remedy=one.remedy_sql,
        reason=one.why,
    )
