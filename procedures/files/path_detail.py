"""`show_fs_path_detail`: how much lies below a path."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Entry, Location
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import Call, Filter, Limit, Named, procedure

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
