"""`show_commit_files`: what one write did to each file group."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.inspection.history.writes import decode_write, stats_of
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES
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


@procedure("show_commit_files")
class ShowCommitFiles(Call):
    """The file groups that a write has written to; a row each."""

    table: TableName = None
    limit: Limit = 10
    instant_time: OfInstant
    filter: Filter = ""
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        action: str
        partition_path: str
        file_id: str
        previous_commit: Annotated[str | None, "That of the file it has replaced; null as a text."]
        total_records_updated: int
        total_records_written: int
        total_bytes_written: int
        total_errors: int
        file_size: Annotated[int, "In bytes."]

    def run(self, caller: Caller) -> Iterable[Row]:
        history = open_table(caller, self.table, self.path).history()
        recorded = history.named(self.instant_time, COMPLETED_WRITES)
        for partition, stat in stats_of(decode_write(recorded)):
            yield self.Row(
                action=recorded.instant.action.value,
                partition_path=partition,
                file_id=stat.file_id,
                previous_commit=stat.prev_commit,
                total_records_updated=stat.num_update_writes,
                total_records_written=stat.num_writes,
                total_bytes_written=stat.total_write_bytes,
                total_errors=stat.total_write_errors,
                file_size=stat.file_size_in_bytes,
            )
