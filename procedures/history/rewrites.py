"""`show_compaction` and `show_clustering`: pending and completed plans that rewrite files."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.formats.instant_metadata.replace import ClusteringPlan
from lakewarden.engine.services.inspection.history.history import (
    clustering_plans,
    compaction_plans,
    state_word,
)
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    TableName,
    TablePath,
    procedure,
)


@procedure("show_compaction")
class ShowCompaction(Call):
    """The compactions on the active timeline, newest first; a row each."""

    table: TableName = None
    path: TablePath = None
    limit: Limit = 20
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        timestamp: Annotated[str, "Its instant."]
        operation_size: Annotated[int | None, "The file slices in its plan; null if it is torn."]
        state: Annotated[str, "REQUESTED, INFLIGHT or COMPLETED"]

    def run(self, caller: Caller) -> Iterable[Row]:
        for instant, plan in compaction_plans(open_table(caller, self.table, self.path).history()):
            yield self.Row(
                timestamp=instant.requested,
                operation_size=None if plan is None else len(plan.operations),
                state=state_word(instant),
            )


# What stands for partitions that were not asked for.
NOT_SHOWN = "*"


@procedure("show_clustering")
class ShowClustering(Call):
    """The clusterings on the active timeline, newest first; a row each."""

    table: TableName = None
    path: TablePath = None
    limit: Limit = 20
    show_involved_partition: Annotated[bool, "Name the partitions in the plan."] = False
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        timestamp: Annotated[str, "Its instant."]
        input_group_size: Annotated[int | None, "The groups in its plan; null if it is torn."]
        state: Annotated[str, "REQUESTED, INFLIGHT or COMPLETED"]
        involved_partitions: Annotated[str, "Separated by commas; * where not asked for."]

    def run(self, caller: Caller) -> Iterable[Row]:
        for instant, plan in clustering_plans(open_table(caller, self.table, self.path).history()):
            yield self.Row(
                timestamp=instant.requested,
                input_group_size=None if plan is None else len(plan.input_groups),
                state=state_word(instant),
                involved_partitions=self._involved(plan),
            )

    def _involved(self, plan: ClusteringPlan | None) -> str:
        return _partitions(plan) if self.show_involved_partition else NOT_SHOWN


def _partitions(plan: ClusteringPlan | None) -> str:
    groups = () if plan is None else plan.input_groups
    return ",".join(sorted({one.partition_path or "" for group in groups for one in group.slices}))
