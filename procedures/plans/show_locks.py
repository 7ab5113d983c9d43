"""`show_locks`: the lock that writers of the table share."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import Call, TableName, TablePath, procedure
from lakewarden.procedures.declaring.moments import moment_of
from lakewarden.procedures.declaring.opening import open_table


@procedure("show_locks")
class ShowLocks(Call):
    """Whether the table's lock is held, by whom, and until when; looking takes nothing."""

    table: TableName = None
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        lock: Annotated[str, "Its kind and place."]
        state: Annotated[str, "free or held"]
        owner: str | None
        held_since: datetime | None
        age_seconds: float | None
        expires_at: Annotated[datetime | None, "Unless it is renewed; none if it never does."]

    def run(self, caller: Caller) -> Iterable[Row]:
        for one in open_table(caller, self.table, self.path).locks():
            yield self.Row(
                lock=one.lock,
                state="free" if one.owner is None else "held",
                owner=one.owner,
                held_since=moment_of(one.since_ms),
                age_seconds=one.age_seconds,
                expires_at=moment_of(one.expires_at_ms),
            )
