"""`show_rollbacks`: what rollbacks have undone."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.inspection.history.rollbacks import rollbacks
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


@procedure("show_rollbacks")
class ShowRollbacks(Call):
    """The instants that rollbacks have undone, the newest rollback first; a row each."""

    table: TableName = None
    limit: Limit = 10
    filter: Filter = ""
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant: Annotated[str, "That of the rollback."]
        rollback_instant: Annotated[str, "The instant that it rolled back."]
        total_files_deleted: int
        time_taken_in_millis: int
        total_partitions: int

    def run(self, caller: Caller) -> Iterable[Row]:
        for instant, metadata in rollbacks(open_table(caller, self.table, self.path).history()):
            for undone in metadata.commits_rollback:
                yield self.Row(
                    instant=instant,
                    rollback_instant=undone,
                    total_files_deleted=metadata.total_files_deleted,
                    time_taken_in_millis=metadata.time_taken_in_millis,
                    total_partitions=len(metadata.partition_metadata),
                )
