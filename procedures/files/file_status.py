"""`show_file_status` and `show_invalid_parquet`: what became of a file; damaged files.

`show_fs_path_detail`: how much lies below a path.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.query.removed_files import broken_files
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.services.inspection.files.slice_view import file_status
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Entry, Location
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    Named,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.texts import listed, refuse_delete


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


_UNITS = (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10))


@procedure("show_fs_path_detail")
class ShowFsPathDetail(Call):
    """The files and bytes below a path, or below each thing in it; the largest first."""

    path: Annotated[str, "A folder."]
    is_sub: Annotated[bool, "A row for each folder and file in it."] = False
    sort: Annotated[bool, "By bytes; otherwise by the number of files."] = True
    limit: Limit = 100
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        path_num: Annotated[int, "Folders, with itself; object stores have those with files."]
        file_num: int
        storage_size: Annotated[int, "In bytes."]
        storage_size_unit: Annotated[str, "The same in a larger unit.", Named("storage_size(unit)")]
        storage_path: str
        space_consumed: Annotated[int, "The bytes; copies that a file system keeps don't count."]
        quota: Annotated[int | None, "Nothing: only HDFS has them."]
        space_quota: Annotated[int | None, "Nothing: only HDFS has them."]

    def run(self, caller: Caller) -> Iterable[Row]:
        caller.permissions.check_path(self.path)
        place = caller.place_at(self.path)
        storage = open_storage(Location(place.path, place.storage_options))
        if self.is_sub:
            top = storage.list("")
            rows = [
                _row(storage.uri(folder.rstrip("/")), folder, storage.walk(folder.rstrip("/")))
                for folder in top.folders
            ]
            rows += [_row(storage.uri(file.path), None, [file]) for file in top.files]
        else:
            rows = [_row(place.path, "", storage.walk(""))]
        return sorted(
            rows, key=lambda row: row.storage_size if self.sort else row.file_num, reverse=True
        )


def _row(address: str, folder: str | None, files: Sequence[Entry]) -> ShowFsPathDetail.Row:
    folders = {file.path.rpartition("/")[0] for file in files} | {(folder or "").rstrip("/")}
    size = sum(file.size_bytes for file in files)
    return ShowFsPathDetail.Row(
        path_num=0 if folder is None else len(folders),
        file_num=len(files),
        storage_size=size,
        storage_size_unit=_in_unit(size),
        storage_path=address,
        space_consumed=size,
        quota=None,
        space_quota=None,
    )


def _in_unit(size: int) -> str:
    return next((f"{size / one:.2f}{unit}" for unit, one in _UNITS if size >= one), f"{size}B")
