"""`show_markers`: the data files that instants have announced."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import procedure
from lakewarden.procedures.declaring.moments import moment_of
from lakewarden.procedures.plans.instant_call import InstantCall


@procedure("show_markers")
class ShowMarkers(InstantCall):
    """The notes that are left before data files are written, so that a crash can be undone."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant: str
        partition: str
        file_name: Annotated[str, "The data file that was announced."]
        kind: Annotated[str | None, "CREATE, MERGE or APPEND"]
        state: Annotated[str, "needed while its instant is pending, otherwise left_behind"]
        at: datetime | None
        age_seconds: float | None

    def run(self, caller: Caller) -> Iterable[Row]:
        for one in self.opened(caller).markers(self.instant):
            yield self.Row(
                instant=one.instant,
                partition=one.partition,
                file_name=one.file_name,
                kind=one.kind,
                state="needed" if one.is_needed else "left_behind",
                at=moment_of(one.at_ms),
                age_seconds=one.age_seconds,
            )
