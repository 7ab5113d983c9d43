"""`show_commit_partitions`: what one write did to each partition."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.inspection.history.writes import decode_write, figures_of
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


@procedure("show_commit_partitions")
class ShowCommitPartitions(Call):
    """The partitions that a write has written to; a row each."""

    table: TableName = None
    limit: Limit = 10
    instant_time: OfInstant
    filter: Filter = ""
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        action: str
        partition_path: str
        total_files_added: Annotated[int, "File groups that it created."]
        total_files_updated: Annotated[int, "Existing file groups that it changed."]
        total_records_inserted: int
        total_records_updated: int
        total_bytes_written: int
        total_errors: int

    def run(self, caller: Caller) -> Iterable[Row]:
        history = open_table(caller, self.table, self.path).history()
        recorded = history.named(self.instant_time, COMPLETED_WRITES)
        written = decode_write(recorded).partition_to_write_stats
        for partition in sorted(written):
            figures = figures_of(written[partition])
            yield self.Row(
                action=recorded.instant.action.value,
                partition_path=partition,
                total_files_added=figures.files_added,
                total_files_updated=figures.files_updated,
                total_records_inserted=figures.records_inserted,
                total_records_updated=figures.records_updated,
                total_bytes_written=figures.bytes_written,
                total_errors=figures.errors,
            )
