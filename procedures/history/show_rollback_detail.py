"""`show_rollback_detail`: the files that a rollback has removed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.inspection.history.rollbacks import removals
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
from lakewarden.procedures.history.arguments import OfInstant


@procedure("show_rollback_detail")
class ShowRollbackDetail(Call):
    """The files that a rollback was to remove; a row each."""

    table: TableName = None
    limit: Limit = 10
    instant_time: OfInstant
    filter: Filter = ""
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant: Annotated[str, "That of the rollback."]
        rollback_instant: Annotated[str, "The instant that it rolled back."]
        partition: str
        deleted_file: str
        succeeded: Annotated[bool, "Whether the file is gone."]

    def run(self, caller: Caller) -> Iterable[Row]:
        history = open_table(caller, self.table, self.path).history()
        for one in removals(history, self.instant_time):
            yield self.Row(
                instant=one.instant,
                rollback_instant=one.undone,
                partition=one.partition,
                deleted_file=one.file,
                succeeded=one.succeeded,
            )
