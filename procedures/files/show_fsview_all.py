"""`show_fsview_all`: every file slice of a table."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.services.inspection.files.slice_view import all_slices
from lakewarden.engine.snapshot import Snapshot
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import procedure
from lakewarden.procedures.files.arguments import names_text
from lakewarden.procedures.files.view_call import ViewCall


@procedure("show_fsview_all")
class ShowFsviewAll(ViewCall):
    """All file slices, by partition and file group, oldest first; a row each."""

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
        state = self.state(caller)
        for slice_ in all_slices(state, self.plan_request(self.path_regex)):
            yield _row(state, slice_)


def _row(state: Snapshot, slice_: FileSlice) -> ShowFsviewAll.Row:
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
