"""`repair_deduplicate`: leave every key once."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    Options,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.texts import listed


@procedure("repair_deduplicate", is_mutating=True)
class RepairDeduplicate(Call):
    """Of the rows that share a key leave the newest one; a row for each of them.

    The others go in one commit. It only tells what it would do unless `dry_run => false`.
    """

    table: TableName = None
    duplicated_partition_path: Annotated[
        str | None, "Only these partitions, by their paths separated by commas."
    ] = None
    dry_run: DryRun = True
    options: Options = None
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        key: str
        partition: str
        file_id: str
        row: Annotated[int, "Of the rows of its file group, counted from 0."]
        commit_time: Annotated[str, "The write that the row is from."]
        stays: bool
        reason: Annotated[str, "Why it stays, or goes."]
        instant: Annotated[str | None, "The commit that has removed the others."]

    def run(self, caller: Caller) -> Iterable[Row]:
        named = listed(self.duplicated_partition_path or "")
        done = open_table(caller, self.table, self.path).repair_deduplicate(
            named or None, self.options, dry_run=self.dry_run
        )
        for one in done.copies:
            yield self.Row(
                key=one.key,
                partition=one.partition,
                file_id=one.file_id,
                row=one.row,
                commit_time=one.commit_time,
                stays=one.stays,
                reason=one.reason,
                instant=None if done.commit is None else done.commit.instant,
            )
