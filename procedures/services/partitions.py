"""`drop_partition` and `truncate_table`: delete partitions."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.removal import PartitionRemoval
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


def removal_message(done: PartitionRemoval, *, dry_run: bool) -> str:
    """What was deleted and by which write, or why nothing."""
    if not done:
        named = ", ".join(done.empty)
        return f"There are no rows in {named}." if named else "There is nothing to delete."
    size = sum(one.bytes for one in done.partitions)
    extent = f"{len(done.partitions)} partitions with {size} bytes"
    if done.commit is None:
        return f"{extent} would go; nothing was changed." if dry_run else extent
    return f"{extent} were deleted by {done.commit.instant}; a clean will remove their files."


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
