"""`show_fsview_all`: every file slice of a table."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.read.table_state import TableState
from lakewarden.engine.services.files.view import ViewWish, all_slices
from lakewarden.engine.view.slices import FileSlice
from lakewarden.procedures.caller import Caller
from lakewarden.procedures.declaration import Call, Filter, Limit, TableName, TablePath, procedure
from lakewarden.procedures.files.arguments import (
    ExcludeCompaction,
    IncludeInFlight,
    IncludeMax,
    MaxInstant,
    PathRegex,
    names_text,
)
from lakewarden.procedures.opening import open_table


@procedure("show_fsview_all")
class ShowFsviewAll(Call):
    """All file slices, by partition and file group, oldest first; a row each."""

    table: TableName = None
    path: TablePath = None
    max_instant: MaxInstant = ""
    include_max: IncludeMax = False
    include_in_flight: IncludeInFlight = False
    exclude_compaction: ExcludeCompaction = False
    limit: Limit = 10
    path_regex: PathRegex = ""
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        partition: str
        file_id: str
        base_instant: str
        data_file: Annotated[str, "The address of its base file; empty without one."]
        data_file_size: Annotated[int, "In bytes."]
        num_delta_files: int
        total_delta_file_size: Annotated[int, "In bytes."]
        delta_files: Annotated[str, "The names of its logs, in the order they are read."]

    def run(self, caller: Caller) -> Iterable[Row]:
        state = open_table(caller, self.table, self.path).state()
        wish = ViewWish(
            before=self.max_instant,
            is_inclusive=self.include_max,
            has_pending=self.include_in_flight,
            without_compaction=self.exclude_compaction,
            partitions=self.path_regex,
        )
        for slice_ in all_slices(state, wish):
            yield _row(state, slice_)


def _row(state: TableState, slice_: FileSlice) -> ShowFsviewAll.Row:
    base = slice_.base_file
    return ShowFsviewAll.Row(
        partition=slice_.partition,
        file_id=slice_.file_id,
        base_instant=slice_.base_instant,
        data_file=state.storage.uri(slice_.path(base)) if base else "",
        data_file_size=base.size_bytes if base else 0,
        num_delta_files=len(slice_.log_files),
        total_delta_file_size=sum(log.size_bytes for log in slice_.log_files),
        delta_files=names_text([log.name for log in slice_.log_files]),
    )
