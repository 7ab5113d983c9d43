"""`show_commit_write_stats`: how much one write has written."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.inspection.history.writes import decode_write, figures_of_write
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


@procedure("show_commit_write_stats")
class ShowCommitWriteStats(Call):
    """What a write has written, in all; one row."""

    table: TableName = None
    limit: Limit = 10
    instant_time: OfInstant
    filter: Filter = ""
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        action: str
        total_bytes_written: int
        total_records_written: int
        avg_record_size: Annotated[int, "In bytes, rounded up; 0 where nothing was written."]

    def run(self, caller: Caller) -> Iterable[Row]:
        history = open_table(caller, self.table, self.path).history()
        recorded = history.named(self.instant_time, COMPLETED_WRITES)
        figures = figures_of_write(decode_write(recorded))
        yield self.Row(
            action=recorded.instant.action.value,
            total_bytes_written=figures.bytes_written,
            total_records_written=figures.records_written,
            avg_record_size=figures.average_record_bytes,
        )
