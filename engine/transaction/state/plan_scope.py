"""The scope of a plan: what a pending service shall touch, and whether it may be given up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata import (
    clean,
    compaction,
    indexing,
    replace,
    restore,
    rollback,
)
from lakewarden.engine.timeline.instants.instant import Action

# In a plan's extra metadata: whether it may be cancelled, or gives way to those in a hurry.
CANCELLABLE_KEY = "lakewarden.cancellable"

INGESTION = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})


@dataclass(frozen=True, slots=True)
class PlanScope:
    """What a plan says about itself."""

    groups: frozenset[FileGroupId] = frozenset()
    # Partitions that earlier plans skipped, and this one too.
    missing_partitions: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def partitions(self) -> tuple[str, ...]:
        return tuple(sorted({group.partition for group in self.groups}))

    @property
    def is_cancellable(self) -> bool:
        return self.extra.get(CANCELLABLE_KEY, "false").strip().lower() == "true"


def plan_scope(action: Action, content: bytes, path: str) -> PlanScope:
    """The scope in a requested file; `torn_plan` where a plan belongs and none is whole.

    Ingestion has no plan: whatever its requested file holds, its scope is empty.
    """
    read = _READERS.get(action)
    return PlanScope() if read is None else read(content, path)


def _of_compaction(content: bytes, path: str) -> PlanScope:
    plan = compaction.decode_plan(content, path)
    return PlanScope(
        frozenset(
            FileGroupId(operation.partition_path or "", operation.file_id or "")
            for operation in plan.operations
        ),
        plan.missing_schedule_partitions,
        plan.extra_metadata,
    )


def _of_clustering(content: bytes, path: str) -> PlanScope:
    plan = replace.decode_plan(content, path).clustering_plan or replace.ClusteringPlan()
    return PlanScope(
        frozenset(
            FileGroupId(slice_.partition_path or "", slice_.file_id or "")
            for group in plan.input_groups
            for slice_ in group.slices
        ),
        plan.missing_schedule_partitions,
        plan.extra_metadata,
    )


def _whole(decode: Callable[[bytes, str], object]) -> Callable[[bytes, str], PlanScope]:
    """Plans that hold no file group: all there is to know is that they are whole."""

    def read(content: bytes, path: str) -> PlanScope:
        decode(content, path)
        return PlanScope()

    return read


_READERS: dict[Action, Callable[[bytes, str], PlanScope]] = {
    Action.COMPACTION: _of_compaction,
    Action.LOG_COMPACTION: _of_compaction,
    Action.CLUSTERING: _of_clustering,
    Action.CLEAN: _whole(clean.decode_plan),
    Action.ROLLBACK: _whole(rollback.decode_plan),
    Action.RESTORE: _whole(restore.decode_plan),
    Action.INDEXING: _whole(indexing.decode_plan),
}
