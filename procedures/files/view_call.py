"""What the views of files have in common."""

from abc import ABC
from dataclasses import dataclass

from lakewarden.engine.services.inspection.files.slice_view import ViewRequest
from lakewarden.engine.snapshot import Snapshot
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import Call, Filter, Limit, TableName, TablePath
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.files.arguments import (
    ExcludeCompaction,
    IncludeInFlight,
    IncludeMax,
    MaxInstant,
    PathRegex,
)


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
