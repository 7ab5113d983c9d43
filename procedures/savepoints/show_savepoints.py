"""`show_savepoints`: the savepoints of a table."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
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
from lakewarden.procedures.declaring.moments import moment_of
from lakewarden.procedures.declaring.opening import open_table


@procedure("show_savepoints")
class ShowSavepoints(Call):
    """The savepoints there are, newest first."""

    table: TableName = None
    path: TablePath = None
    limit: Limit = None
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        savepoint_time: Annotated[str, "The instant of the write that it keeps."]
        completed_time: Annotated[str, "The instant at which it was made."]
        user: str
        comments: str
        saved_at: datetime | None
        files_count: int
        partitions_count: int

    def run(self, caller: Caller) -> Iterable[Row]:
        for one in reversed(open_table(caller, self.table, self.path).savepoints()):
            yield self.Row(
                savepoint_time=one.instant,
                completed_time=one.completed,
                user=one.user,
                comments=one.comment,
                saved_at=moment_of(one.saved_at_ms),
                files_count=one.files,
                partitions_count=one.partitions,
            )
