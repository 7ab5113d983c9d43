"""`set_index`: say by which index all writes of a table find keys."""

from collections.abc import Iterable, Mapping
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


@procedure("set_index", is_mutating=True)
class SetIndex(Call):
    """Set by which index all writes find keys, as far as the rows that there are allow it.

    An index that takes the same rows for one row can always be set, and any in a table without
    rows; for keys that stand for one row in the whole table the rows are looked at first.
    """

    index_type: Annotated[str, "A value of hoodie.index.type, such as BLOOM or GLOBAL_SIMPLE."]
    table: TableName = None
    options: Annotated[
        Mapping[str, str] | None, "Settings of Hudi; those of a bucket index say how it divides."
    ] = None
    dry_run: DryRun = False
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        index_type: str
        buckets_count: Annotated[int | None, "Buckets in each partition, of a bucket index."]
        is_changed: bool
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        done = open_table(caller, self.table, self.path).set_index(
            self.index_type, self.options, dry_run=self.dry_run
        )
        yield self.Row(
            index_type=done.index,
            buckets_count=done.buckets_count,
            is_changed=done.is_changed,
            message=done.message,
        )
