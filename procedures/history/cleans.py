"""`show_cleans`: completed and planned cleans, and what they removed."""

import json
from abc import ABC
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated

from lakewarden.engine.formats.instant_metadata.clean import (
    CleanMetadata,
    CleanPartition,
    CleanPlan,
)
from lakewarden.engine.services.inspection.history.history import (
    History,
    clean_plans,
    cleans,
    state_word,
)
from lakewarden.engine.timeline.instants.instant import Instant
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.history.arguments import ShowArchived


@dataclass(frozen=True, kw_only=True)
class CleanCall(Call, ABC):
    """A call about the cleans of a table, with Hudi's arguments."""

    table: TableName = None
    limit: Limit = 10
    show_archived: ShowArchived = False
    filter: Filter = ""
    path: TablePath = None

    def history(self, caller: Caller) -> History:
        """What the table's instants have to say."""
        return open_table(caller, self.table, self.path).history()


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
                yield _cleaned_partition_row(
                    instant, metadata, metadata.partition_metadata[partition]
                )


def _cleaned_partition_row(
    instant: Instant, whole: CleanMetadata, part: CleanPartition
) -> ShowCleansMetadata.Row:
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


@procedure("show_clean_plans")
class ShowCleanPlans(CleanCall):
    """The plans of cleans, done or not, newest first; a row each, without figures if it is torn."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        plan_time: Annotated[str, "The instant of the clean."]
        state: Annotated[str, "REQUESTED, INFLIGHT or COMPLETED"]
        action: str
        earliest_instant_to_retain: Annotated[str | None, "The oldest write to be kept."] = None
        last_completed_commit_timestamp: Annotated[str | None, "The newest write before it."] = None
        policy: str | None = None
        version: Annotated[int | None, "Of the plan."] = None
        total_partitions_to_clean: int | None = None
        total_partitions_to_delete: int | None = None
        extra_metadata: Annotated[str | None, "As a JSON object."] = None

    def run(self, caller: Caller) -> Iterable[Row]:
        for instant, plan in clean_plans(self.history(caller), archived=self.show_archived):
            yield _clean_plan_row(instant, plan)


def _clean_plan_row(instant: Instant, plan: CleanPlan | None) -> ShowCleanPlans.Row:
    row = ShowCleanPlans.Row(
        plan_time=instant.requested, state=state_word(instant), action=instant.action.value
    )
    if plan is None:
        return row
    retained = plan.earliest_instant_to_retain
    return replace(
        row,
        earliest_instant_to_retain=None if retained is None else retained.timestamp,
        last_completed_commit_timestamp=plan.last_completed_commit_timestamp,
        policy=plan.policy,
        version=plan.version,
        total_partitions_to_clean=len(_partitions(plan)),
        total_partitions_to_delete=len(plan.partitions_to_be_deleted),
        extra_metadata=json.dumps(dict(plan.extra_metadata)),
    )


def _partitions(plan: CleanPlan) -> set[str]:
    # Old plans name their files without saying where these lie.
    return {
        *plan.file_paths_to_be_deleted_per_partition,
        *(plan.files_to_be_deleted_per_partition or {}),
    }
