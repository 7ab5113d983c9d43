"""`show_invalid_parquet`: the Parquet files that can't be read."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.read.query.broken_files import broken_files
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.kept_files import NeedDelete, refuse_delete
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.declaring.texts import listed

THREADS_MAX = 64


@procedure("show_invalid_parquet")
class ShowInvalidParquet(Call):
    """The Parquet files of a table whose footer can't be read; a row each."""

    path: TablePath = None
    parallelism: Annotated[int, "How many footers are read at the same time, up to 64."] = 100
    limit: Limit = 100
    need_delete: NeedDelete = False
    partitions: Annotated[str, "Only these, separated by commas."] = ""
    instants: Annotated[str, "Only files of these writes, separated by commas."] = ""
    filter: Filter = ""
    table: TableName = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        path: Annotated[str, "The address of the file."]
        reason: Annotated[str, "What is wrong with it."]

    def run(self, caller: Caller) -> Iterable[Row]:
        refuse_delete("show_invalid_parquet", need_delete=self.need_delete)
        storage = open_table(caller, self.table, self.path).state().storage
        executor = LocalExecutor(max(1, min(self.parallelism, THREADS_MAX)))
        for found in broken_files(
            storage, executor, listed(self.partitions), listed(self.instants)
        ):
            yield self.Row(path=storage.uri(found.path), reason=found.reason)
