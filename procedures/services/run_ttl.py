"""`run_ttl`: delete partitions that nothing was written to for long."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from lakewarden.engine.services.expiry import DAYS_RETAINED, POLICY
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    Options,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.moments import moment_of
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.services.options import with_arguments


@procedure("run_ttl", is_mutating=True)
class RunTtl(Call):
    """Delete the partitions whose last write is older than so many days; a row for each."""

    table: TableName = None
    ttl_policy: Annotated[str | None, "KEEP_BY_TIME, which counts from the last write."] = None
    retain_days: Annotated[int | None, "For how many days partitions stay; else as set."] = None
    options: Options = None
    path: TablePath = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        deleted_partitions: Annotated[str | None, "None where no partition has expired."]
        last_written_at: datetime | None
        bytes: int
        instant: Annotated[str | None, "The write that deleted it."]
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        arguments = {POLICY: self.ttl_policy, DAYS_RETAINED: self.retain_days}
        done = open_table(caller, self.table, self.path).expire_partitions(
            dry_run=self.dry_run, options=with_arguments(self.options, arguments)
        )
        for one in done.partitions:
            yield self.Row(
                deleted_partitions=one.partition,
                last_written_at=moment_of(one.last_write_ms),
                bytes=one.bytes,
                instant=None if done.commit is None else done.commit.instant,
                message="It has expired.",
            )
        if not done:
            message = "No partition has expired."
            yield self.Row(
                deleted_partitions=None,
                last_written_at=None,
                bytes=0,
                instant=None,
                message=message,
            )
