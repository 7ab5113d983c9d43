"""`drop_partition`: delete everything in partitions."""

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
from lakewarden.procedures.declaring.texts import listed
from lakewarden.procedures.services.removal_words import removal_message


@procedure("drop_partition", is_mutating=True)
class DropPartition(Call):
    """Delete all rows of some partitions.

    Earlier times stay readable until a clean removes the files.
    """

    table: TableName = None
    partition: Annotated[str, "Paths of partitions such as day=2026-11-01, separated by commas."]
    options: Options = None
    dry_run: DryRun = False
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        result: Annotated[str, "What the call did, or why it did nothing."]
        instant: Annotated[str | None, "The write that did it."]
        dropped_partitions: Annotated[str, "Separated by commas."]
        file_groups_count: int
        bytes: int

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        named = listed(self.partition)
        done = table.drop_partitions(named, dry_run=self.dry_run, options=self.options)
        yield self.Row(
            result=removal_message(done, dry_run=self.dry_run),
            instant=None if done.commit is None else done.commit.instant,
            dropped_partitions=",".join(one.partition for one in done.partitions),
            file_groups_count=sum(one.file_groups for one in done.partitions),
            bytes=sum(one.bytes for one in done.partitions),
        )
