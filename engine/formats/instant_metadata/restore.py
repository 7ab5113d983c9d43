"""Restores: a table taken back to a savepoint by rolling back everything after it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewarden.engine.formats.instant_metadata.binding import InstantCodec, Int32, schema_text
from lakewarden.engine.formats.instant_metadata.rollback import (
    InstantReference,
    RollbackMetadata,
    check_places,
)
from lakewarden.engine.storage import paths


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """The content of a requested restore; instants newest first."""

    instants_to_rollback: tuple[InstantReference, ...] = ()
    version: Int32 | None = 2
    savepoint_to_restore_timestamp: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreMetadata:
    """The content of a completed restore: the rollbacks it consisted of, by instant."""

    start_restore_time: str
    time_taken_in_millis: int = 0
    instants_to_rollback: tuple[str, ...] = ()
    hoodie_restore_metadata: Mapping[str, tuple[RollbackMetadata, ...]] = field(
        default_factory=dict
    )
    version: Int32 | None = 1
    restore_instant_info: tuple[InstantReference, ...] = ()


def _check_plan(plan: RestorePlan, said_by: str) -> None:
    for instant in plan.instants_to_rollback:
        paths.check_instant(instant.commit_time, said_by)
    if plan.savepoint_to_restore_timestamp:
        paths.check_instant(plan.savepoint_to_restore_timestamp, said_by)


def _check_places(metadata: RestoreMetadata, said_by: str) -> None:
    for rollbacks in metadata.hoodie_restore_metadata.values():
        for rollback in rollbacks:
            check_places(rollback, said_by)


_PLAN = InstantCodec(RestorePlan, schema_text("restore_plan"), _check_plan)
_METADATA = InstantCodec(RestoreMetadata, schema_text("restore"), _check_places)

decode_plan = _PLAN.decode_plan
encode_plan = _PLAN.encode
decode = _METADATA.decode
encode = _METADATA.encode
