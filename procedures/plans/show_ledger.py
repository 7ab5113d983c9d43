"""`show_ledger`: who has tried an instant, and how it ended."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from lakewarden.engine.services.inspection.state.ledgers import LedgerRow
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import procedure
from lakewarden.procedures.declaring.moments import moment_of
from lakewarden.procedures.plans.instant_call import InstantCall


@procedure("show_ledger")
class ShowLedger(InstantCall):
    """The entries of an instant's ledger, or of all ledgers; oldest first."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant: str
        number: Annotated[int, "The place of the entry in its ledger."]
        entry: Annotated[str, "claim, committed, cancelled, withdrawn or torn"]
        attempt: int | None
        owner: str | None
        host: str | None
        at: datetime | None
        age_seconds: float | None
        completion_time: Annotated[str | None, "The instant at which it was committed."]
        cancelled_by: str | None
        reason: str | None
        handed_back_partitions_count: Annotated[int, "The partitions that the next plan checks."]

    def run(self, caller: Caller) -> Iterable[Row]:
        return map(_row, self.opened(caller).ledger(self.instant))


def _row(entry: LedgerRow) -> ShowLedger.Row:
    return ShowLedger.Row(
        instant=entry.instant,
        number=entry.number,
        entry=entry.entry,
        attempt=entry.attempt,
        owner=entry.owner,
        host=entry.host,
        at=moment_of(entry.at_ms),
        age_seconds=entry.age_seconds,
        completion_time=entry.completion_time,
        cancelled_by=entry.by,
        reason=entry.reason,
        handed_back_partitions_count=len(entry.handed_back),
    )
