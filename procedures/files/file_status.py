"""`show_file_status` and `show_invalid_parquet`: what became of a file; damaged files."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.query.broken_files import broken_files
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.services.inspection.files.status import file_status
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.kept_files import refuse_delete
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.declaring.texts import listed


@procedure("show_file_status")
class ShowFileStatus(Call):
    """Whether a file is there, or else what has removed it; one row."""

    table: TableName = None
    path: TablePath = None
    partition: Annotated[str | None, "The path of its partition, if the table has any."] = None
    file: Annotated[str, "The name of the file."]
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        status: Annotated[str, "exist, deleted, or unknown without a trace of it"]
        action: Annotated[str | None, "The action that removed it, or wrote it."]
        instant: Annotated[str | None, "The instant of that action."]
        timeline: Annotated[str | None, "Where that instant is: active or archived."]
        full_path: Annotated[str | None, "The address of a file that is there."]

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        if self.partition is None and table.config.is_partitioned:
            raise InvalidRequest(
                "missing_argument",
                what="show_file_status needs partition.",
                why="The table has partitions, and several may have a file of that name.",
                now="Add partition => '...', as show_fsview_all shows it.",
                argument="partition",
            )
        found = file_status(table.history(), self.partition or "", self.file)
        where = {None: None, True: "archived", False: "active"}
        yield self.Row(
            status=found.status,
            action=found.action,
            instant=found.instant,
            timeline=where[found.is_archived],
            full_path=found.path,
        )


THREADS_MAX = 64


@procedure("show_invalid_parquet")
class ShowInvalidParquet(Call):
    """The Parquet files of a table whose footer can't be read; a row each."""

    path: TablePath = None
    parallelism: Annotated[int, "How many footers are read at the same time, up to 64."] = 100
    limit: Limit = 100
    need_delete: Annotated[
        bool,
        "Delete them, where they only lie in a partition; files that a write has made stay.",
    ] = False
    partitions: Annotated[str, "Only these, separated by commas."] = ""
    instants: Annotated[str, "Only files of these writes, separated by commas."] = ""
    filter: Filter = ""
    table: TableName = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        path: Annotated[str, "The address of the file."]
        reason: Annotated[str, "What is wrong with it."]

    def run(self, caller: Caller) -> Iterable[Row]:
        storage = open_table(caller, self.table, self.path).state().storage
        executor = LocalExecutor(max(1, min(self.parallelism, THREADS_MAX)))
        chosen = listed(self.partitions), listed(self.instants)
        broken = list(broken_files(storage, executor, *chosen))
        if any(not one.is_foreign for one in broken):
            refuse_delete("show_invalid_parquet", need_delete=self.need_delete)
        if self.need_delete:
            storage.delete_all([one.path for one in broken])
        for found in broken:
            yield self.Row(path=storage.uri(found.path), reason=found.reason)
