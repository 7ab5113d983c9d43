"""`create_savepoint`: keep the table as it was at a write."""

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


@procedure("create_savepoint", is_mutating=True)
class CreateSavepoint(Call):
    """Keep the files of the table as it was at a write, so that it can be come back to."""

    table: TableName = None
    commit_time: Annotated[str, "The instant of the write; the newest one without it."] = ""
    user: Annotated[str, "Who wants it."] = ""
    comments: Annotated[str, "What for."] = ""
    path: TablePath = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        create_savepoint_result: Annotated[bool, "True: it is there; otherwise it is an error."]
        savepoint_time: str
        files_count: int
        partitions_count: int
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        done = open_table(caller, self.table, self.path).savepoint(
            self.commit_time or None,
            user=self.user,
            comment=self.comments,
            dry_run=self.dry_run,
        )
        there, made = "It already existed.", f"It keeps {done.files} files."
        yield self.Row(
            create_savepoint_result=True,
            savepoint_time=done.instant,
            files_count=done.files,
            partitions_count=done.partitions,
            message=there if done.was_there else made,
        )
