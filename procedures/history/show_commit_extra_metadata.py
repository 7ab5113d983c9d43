"""`show_commit_extra_metadata`: what writers have noted beside their writes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.inspection.history.writes import decode_write
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table


@procedure("show_commit_extra_metadata")
class ShowCommitExtraMetadata(Call):
    """The notes of completed writes, the newest write first; a row for each key."""

    table: TableName = None
    limit: Limit = 100
    instant_time: Annotated[str | None, "Only this write's; it may be archived."] = None
    metadata_key: Annotated[str | None, "Only the notes under this key."] = None
    filter: Filter = ""
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant_time: str
        action: str
        metadata_key: str
        metadata_value: str

    def run(self, caller: Caller) -> Iterable[Row]:
        history = open_table(caller, self.table, self.path).history()
        writes = (
            iter((history.named(self.instant_time, COMPLETED_WRITES),))
            if self.instant_time
            else history.completed(COMPLETED_WRITES)
        )
        for recorded in writes:
            for key, value in sorted(decode_write(recorded).extra_metadata.items()):
                if self.metadata_key in (None, "", key):
                    yield self.Row(
                        instant_time=recorded.instant.requested,
                        action=recorded.instant.action.value,
                        metadata_key=key,
                        metadata_value=value,
                    )
