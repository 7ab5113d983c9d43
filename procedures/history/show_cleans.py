"""`show_cleans`: what cleans have removed, a row for each."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.inspection.history.cleans import cleans
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import procedure
from lakewarden.procedures.history.clean_call import CleanCall


@procedure("show_cleans")
class ShowCleans(CleanCall):
    """The completed cleans, newest first; a row each."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        clean_time: Annotated[str, "Its instant."]
        state_transition_time: Annotated[str | None, "When it completed, as the timeline has it."]
        action: str
        start_clean_time: str
        time_taken_in_millis: int
        total_files_deleted: int
        earliest_commit_to_retain: Annotated[str, "The oldest write whose files it has kept."]
        last_completed_commit_timestamp: Annotated[str, "The newest write before it."]
        version: Annotated[int | None, "Of its metadata."]

    def run(self, caller: Caller) -> Iterable[Row]:
        for instant, metadata in cleans(self.history(caller), archived=self.show_archived):
            yield self.Row(
                clean_time=instant.requested,
                state_transition_time=instant.completed,
                action=instant.action.value,
                start_clean_time=metadata.start_clean_time,
                time_taken_in_millis=metadata.time_taken_in_millis,
                total_files_deleted=metadata.total_files_deleted,
                earliest_commit_to_retain=metadata.earliest_commit_to_retain,
                last_completed_commit_timestamp=metadata.last_completed_commit_timestamp,
                version=metadata.version,
            )
