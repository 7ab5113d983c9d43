"""`drop_index`: remove an index, built by any engine."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.indexes.arguments import IndexName


@procedure("drop_index", is_mutating=True)
class DropIndex(Call):
    """Remove an index, built by whomever, or end the building of one."""

    index_name: IndexName
    table: TableName = None
    if_exists: Annotated[bool, "Do nothing if there is no such index."] = False
    dry_run: DryRun = False
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        index_name: str
        partition_name: Annotated[
            str | None, "Its partition of the metadata table; none without an index."
        ]
        freed_bytes: int
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        done = open_table(caller, self.table, self.path).drop_index(
            self.index_name, if_exists=self.if_exists, dry_run=self.dry_run
        )
        yield self.Row(
            index_name=done.name,
            partition_name=done.partition,
            freed_bytes=done.freed_bytes,
            message=done.message,
        )
