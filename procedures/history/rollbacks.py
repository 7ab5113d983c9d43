"""`show_rollbacks`: which instants were rolled back, and what that removed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.inspection.history.history import removals, rollbacks
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.history.arguments import OfInstant


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
