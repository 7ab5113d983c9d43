"""Rollbacks: what shall be removed of a failed or unwanted instant, and what was removed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewarden.engine.formats.instant_metadata.binding import (
    IRREGULAR_NAME,
    InstantCodec,
    Int32,
    schema_text,
)
from lakewarden.engine.storage import paths


@dataclass(frozen=True, slots=True, kw_only=True)
class InstantReference:
    """An instant as plans name it: its requested time and its action."""

    commit_time: str
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackRequest:
    """What to remove in one partition; version 6 appends a command to a log instead."""

    partition_path: str
    file_id: str | None = ""
    latest_base_instant: str | None = ""
    files_to_be_deleted: tuple[str, ...] = ()
    log_blocks_to_be_deleted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackPlan:
    """The content of a requested rollback."""

    instant_to_rollback: InstantReference | None = None
    rollback_requests: tuple[RollbackRequest, ...] = field(
        default=(), metadata={IRREGULAR_NAME: "RollbackRequests"}
    )
    version: Int32 | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackPartition:
    """What a rollback removed in one partition."""

    partition_path: str
    success_delete_files: tuple[str, ...] = ()
    failed_delete_files: tuple[str, ...] = ()
    rollback_log_files: Mapping[str, int] = field(default_factory=dict)
    log_files_from_failed_commit: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackMetadata:
    """The content of a completed rollback."""

    start_rollback_time: str
    time_taken_in_millis: int = 0
    total_files_deleted: Int32 = 0
    commits_rollback: tuple[str, ...] = ()
    partition_metadata: Mapping[str, RollbackPartition] = field(default_factory=dict)
    version: Int32 | None = 1
    instants_rollback: tuple[InstantReference, ...] = ()


def _check_plan(plan: RollbackPlan, said_by: str) -> None:
    if plan.instant_to_rollback is not None:
        paths.check_instant(plan.instant_to_rollback.commit_time, said_by)
    for request in plan.rollback_requests:
        paths.check_partition(request.partition_path, said_by)
        for address in (*request.files_to_be_deleted, *request.log_blocks_to_be_deleted):
            paths.check_address(address, request.partition_path, said_by)


def check_places(metadata: RollbackMetadata, said_by: str) -> None:
    """Hold the partitions that a rollback names against the border of its table."""
    for key, partition in metadata.partition_metadata.items():
        paths.check_partition(key, said_by)
        paths.check_partition(partition.partition_path, said_by)
    for instant in metadata.commits_rollback:
        paths.check_instant(instant, said_by)


_PLAN = InstantCodec(RollbackPlan, schema_text("rollback_plan"), _check_plan)
_METADATA = InstantCodec(RollbackMetadata, schema_text("rollback"), check_places)

decode_plan = _PLAN.decode_plan
encode_plan = _PLAN.encode
decode = _METADATA.decode
encode = _METADATA.encode
