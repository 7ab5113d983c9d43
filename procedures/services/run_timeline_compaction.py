"""`run_timeline_compaction`: merge the files of the archive."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    Options,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table


@procedure("run_timeline_compaction", is_mutating=True)
class RunTimelineCompaction(Call):
    """Merge the files of archived instants, so that readers of the archive open fewer."""

    table: TableName = None
    path: TablePath = None
    options: Options = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        start_compaction_time: Annotated[str, "When it started, as an instant time."]
        time_taken_in_millis: int
        files_before_count: int
        files_after_count: int
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        done = table.compact_timeline(dry_run=self.dry_run, options=self.options)
        merged = f"{done.files_before} files became {done.files_after}."
        yield self.Row(
            start_compaction_time=done.started,
            time_taken_in_millis=done.milliseconds,
            files_before_count=done.files_before,
            files_after_count=done.files_after,
            message=merged if done else "There are too few files to merge.",
        )
