"""`truncate_table`: delete all rows of a table, or of some partitions."""

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


@procedure("truncate_table", is_mutating=True)
class TruncateTable(Call):
    """Delete all rows; earlier times stay readable until a clean."""

    table: TableName = None
    partitions: Annotated[str | None, "Only these, by their paths separated by commas."] = None
    options: Options = None
    dry_run: DryRun = False
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        result: Annotated[str, "What the call did, or why it did nothing."]
        time_cost: Annotated[int, "Milliseconds that the write took."]
        instant: Annotated[str | None, "The write that did it."]
        truncated_partitions_count: int
        bytes: int

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        named = listed(self.partitions)
        if named:
            done = table.drop_partitions(named, dry_run=self.dry_run, options=self.options)
        else:
            done = table.truncate(dry_run=self.dry_run, options=self.options)
        commit = done.commit
        yield self.Row(
            result=removal_message(done, dry_run=self.dry_run),
            time_cost=0 if commit is None else round(sum(commit.seconds.values()) * 1000),
            instant=None if commit is None else commit.instant,
            truncated_partitions_count=len(done.partitions),
            bytes=sum(one.bytes for one in done.partitions),
        )
