"""`show_cleans_metadata`: what cleans have removed, a row for each partition."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.formats.instant_metadata.clean import CleanMetadata, CleanPartition
from lakewarden.engine.services.inspection.history.cleans import cleans
from lakewarden.engine.timeline.instants.instant import Instant
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import procedure
from lakewarden.procedures.history.clean_call import CleanCall


@procedure("show_cleans_metadata")
class ShowCleansMetadata(CleanCall):
    """The partitions of completed cleans, the newest clean first; a row each."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        clean_time: Annotated[str, "The instant of the clean."]
        state_transition_time: Annotated[str | None, "When it completed, as the timeline has it."]
        action: str
        start_clean_time: str
        partition_path: str
        policy: str
        delete_path_patterns: Annotated[int, "How many files it was to delete."]
        success_delete_files: Annotated[int, "How many it has deleted."]
        failed_delete_files: Annotated[int, "How many it could not delete."]
        is_partition_deleted: Annotated[bool | None, "Whether the whole partition went."]
        time_taken_in_millis: Annotated[int, "By the whole clean."]
        total_files_deleted: Annotated[int, "By the whole clean."]

    def run(self, caller: Caller) -> Iterable[Row]:
        for instant, metadata in cleans(self.history(caller), archived=self.show_archived):
            for partition in sorted(metadata.partition_metadata):
                yield _row(instant, metadata, metadata.partition_metadata[partition])


def _row(instant: Instant, whole: CleanMetadata, part: CleanPartition) -> ShowCleansMetadata.Row:
    return ShowCleansMetadata.Row(
        clean_time=instant.requested,
        state_transition_time=instant.completed,
        action=instant.action.value,
        start_clean_time=whole.start_clean_time,
        partition_path=part.partition_path,
        policy=part.policy,
        delete_path_patterns=len(part.delete_path_patterns),
        success_delete_files=len(part.success_delete_files),
        failed_delete_files=len(part.failed_delete_files),
        is_partition_deleted=part.is_partition_deleted,
        time_taken_in_millis=whole.time_taken_in_millis,
        total_files_deleted=whole.total_files_deleted,
    )
