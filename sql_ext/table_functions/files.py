"""`lakewarden_files`: the files that a read of a table looks at."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.file_groups.file_names import BaseFile, DataFile
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import Call, TablePath, procedure
from lakewarden.procedures.declaring.opening import open_table


@procedure("lakewarden_files")
class Files(Call):
    """The base and log files of the newest slices."""

    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        partition: str
        file_id: str
        base_instant: str
        kind: Annotated[str, "base or log"]
        file_name: str
        instant: Annotated[str, "Of the write that made it."]
        bytes: int

    def run(self, caller: Caller) -> Iterable[Row]:
        for slice_ in open_table(caller, None, self.path).file_slices():
            base: tuple[DataFile, ...] = (slice_.base_file,) if slice_.base_file else ()
            for file in (*base, *slice_.log_files):
                yield self.Row(
                    partition=slice_.partition,
                    file_id=slice_.file_id,
                    base_instant=slice_.base_instant,
                    kind="base" if isinstance(file, BaseFile) else "log",
                    file_name=file.name,
                    instant=file.instant,
                    bytes=file.size_bytes,
                )
