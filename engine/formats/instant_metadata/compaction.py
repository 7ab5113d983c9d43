"""Compaction plans: which slices a compaction or log compaction shall rewrite.

Since plan version 2 files are bare names; in version 1 they are full addresses.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewarden.engine.formats.instant_metadata.binding import InstantCodec, Int32, schema_text
from lakewarden.engine.storage import paths

PLAN_VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOperation:
    """One slice: its base file, if it has one, and the logs to fold, oldest first."""

    base_instant_time: str | None
    delta_file_paths: tuple[str, ...] = ()
    data_file_path: str | None = None
    file_id: str | None
    partition_path: str | None = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    bootstrap_file_path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStrategy:
    """The Java class that executes a plan; only log compaction names one."""

    compactor_class_name: str | None = None
    strategy_params: Mapping[str, str] = field(default_factory=dict)
    version: Int32 | None = 1


# Java runs every log compaction by this class, its own plans and ours.
LOG_COMPACTION = CompactionStrategy(
    compactor_class_name="org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """The content of a requested compaction or log compaction."""

    operations: tuple[CompactionOperation, ...] = ()
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    version: Int32 | None = PLAN_VERSION
    strategy: CompactionStrategy | None = None
    preserve_hoodie_metadata: bool | None = False
    missing_schedule_partitions: tuple[str, ...] = ()


def _check_plan(plan: CompactionPlan, said_by: str) -> None:
    for partition in plan.missing_schedule_partitions:
        paths.check_partition(partition, said_by)
    for operation in plan.operations:
        addresses = (operation.data_file_path, *operation.delta_file_paths)
        paths.check_slice(operation.partition_path, operation.file_id, addresses, said_by)


_PLAN = InstantCodec(CompactionPlan, schema_text("compaction_plan"), _check_plan)

decode_plan = _PLAN.decode_plan
encode_plan = _PLAN.encode
