"""`show_clean_plans`: what cleans were planned to remove."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated

from lakewarden.engine.formats.instant_metadata.clean import CleanPlan
from lakewarden.engine.services.inspection.history.history import state_word
from lakewarden.engine.services.inspection.history.plans import clean_plans
from lakewarden.engine.timeline.instants.instant import Instant
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import procedure
from lakewarden.procedures.history.clean_call import CleanCall


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
            yield _row(instant, plan)


def _row(instant: Instant, plan: CleanPlan | None) -> ShowCleanPlans.Row:
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
