"""`show_fsview_all` and `show_fsview_latest`: file groups and slices as readers see them.

Arguments of the views of files.
"""

from abc import ABC
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.file_groups.file_names import LogFile
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.services.inspection.files.slice_view import (
    ViewedSlice,
    ViewRequest,
    all_slices,
    latest_slices,
)
from lakewarden.engine.snapshot import Snapshot
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    TableName,
    TablePath,
    procedure,
)

MaxInstant = Annotated[str, "Only files from before this instant."]
IncludeMax = Annotated[bool, "Also files of that instant."]
IncludeInFlight = Annotated[bool, "Also files whose write has not completed."]
ExcludeCompaction = Annotated[bool, "As if no compaction were pending."]
PathRegex = Annotated[str, "Only partitions whose path is like this: 'city=O*'; all without it."]


def names_text(names: list[str]) -> str:
    """File names as one text."""
    return f"[{', '.join(names)}]"


@dataclass(frozen=True, kw_only=True)
class ViewCall(Call, ABC):
    """A view of the files of a table, with Hudi's arguments."""

    table: TableName = None
    path: TablePath = None
    max_instant: MaxInstant = ""
    include_max: IncludeMax = False
    include_in_flight: IncludeInFlight = False
    exclude_compaction: ExcludeCompaction = False
    limit: Limit = 10
    path_regex: PathRegex = ""
    filter: Filter = ""

    def state(self, caller: Caller) -> Snapshot:
        """The table as it is now."""
        return open_table(caller, self.table, self.path).state()

    def plan_request(self, partitions: str) -> ViewRequest:
        """What is to be seen of it."""
        return ViewRequest(
            before=self.max_instant,
            is_inclusive=self.include_max,
            has_pending=self.include_in_flight,
            without_compaction=self.exclude_compaction,
            partitions=partitions,
        )


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
            yield _slice_row(state, slice_)


def _slice_row(state: Snapshot, slice_: FileSlice) -> ShowFsviewAll.Row:
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


# What Hudi gives where there is no base file to compare with.
NO_BASE = -1.0


@procedure("show_fsview_latest")
class ShowFsviewLatest(ViewCall):
    """The newest slice of each file group, with what a pending compaction will fold of it."""

    partition_path: Annotated[str, "The same as path_regex, of which one may be given."] = ""
    merge: Annotated[bool, "Put the logs above and below a pending compaction together."] = True

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        partition: str
        file_id: str
        base_instant: str
        data_file: Annotated[str, "The address of its base file; empty without one."]
        data_file_size: Annotated[int, "In bytes."]
        num_delta_files: int
        total_delta_file_size: Annotated[int, "In bytes."]
        delta_size_compaction_scheduled: Annotated[int, "Of logs in a pending plan, in bytes."]
        delta_size_compaction_unscheduled: Annotated[int, "Of all other logs, in bytes."]
        delta_to_base_radio_compaction_scheduled: Annotated[float, "-1 without a base file."]
        delta_to_base_radio_compaction_unscheduled: Annotated[float, "-1 without a base file."]
        delta_files_compaction_scheduled: Annotated[str, "Names of logs in a pending plan."]
        delta_files_compaction_unscheduled: Annotated[str, "Names of all other logs."]

    def run(self, caller: Caller) -> Iterable[Row]:
        if self.path_regex and self.partition_path:
            raise InvalidRequest(
                "bad_argument",
                what="The call gives path_regex and partition_path.",
                why="Both select partitions.",
                now="Leave one of them out.",
                argument="partition_path",
            )
        state, plan_request = (
            self.state(caller),
            self.plan_request(self.path_regex or self.partition_path),
        )
        for viewed in latest_slices(state, plan_request, merge=self.merge):
            yield _latest_row(state, viewed)


def _latest_row(state: Snapshot, viewed: ViewedSlice) -> ShowFsviewLatest.Row:
    slice_, base = viewed.slice, viewed.slice.base_file
    base_bytes = base.size_bytes if base else 0
    scheduled, unscheduled = _bytes(viewed.scheduled), _bytes(viewed.unscheduled)
    return ShowFsviewLatest.Row(
        partition=slice_.partition,
        file_id=slice_.file_id,
        base_instant=slice_.base_instant,
        data_file=state.storage.uri(slice_.path(base)) if base else "",
        data_file_size=base_bytes,
        num_delta_files=len(slice_.log_files),
        total_delta_file_size=scheduled + unscheduled,
        delta_size_compaction_scheduled=scheduled,
        delta_size_compaction_unscheduled=unscheduled,
        delta_to_base_radio_compaction_scheduled=_ratio(scheduled, base_bytes),
        delta_to_base_radio_compaction_unscheduled=_ratio(unscheduled, base_bytes),
        delta_files_compaction_scheduled=names_text([log.name for log in viewed.scheduled]),
        delta_files_compaction_unscheduled=names_text([log.name for log in viewed.unscheduled]),
    )


def _bytes(logs: Sequence[LogFile]) -> int:
    return sum(log.size_bytes for log in logs)


def _ratio(log_bytes: int, base_bytes: int) -> float:
    return log_bytes / base_bytes if base_bytes else NO_BASE
