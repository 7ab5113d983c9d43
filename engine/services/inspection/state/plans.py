"""Pending plans of all services, as values for tables."""

from dataclasses import dataclass
from functools import partial

from lakewarden.engine.services.inspection.state.blockers import Blocker, find_blockers
from lakewarden.engine.services.inspection.state.shape import shape_of
from lakewarden.engine.snapshot import Snapshot, retrying_view
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.instants.state import InstantState
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.ledger_end import scope_of
from lakewarden.engine.transaction.state.pending_instants import (
    Pending,
    age_seconds,
    began_at_ms,
    expires_at_ms,
    looked,
    pending_instants,
    service_name,
)
from lakewarden.engine.transaction.state.plan_scope import INGESTION
from lakewarden.engine.transaction.state.service import TABLE_SERVICES

_NO_PLANS = INGESTION | {Action.SAVEPOINT}


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPlan:
    """A plan that has not ended: what it is about, and who works on it."""

    instant: str
    service: str
    state: InstantState
    # Whether it may be cancelled without force.
    cancellable: bool
    partitions_count: int
    file_groups_count: int
    # As its planner reckoned; None where it does not say.
    input_bytes: int | None
    attempt: int | None
    owner: str | None
    host: str | None
    step: str | None
    done_ratio: float | None
    requested_at_ms: int | None
    age_seconds: float | None
    started_at_ms: int | None
    last_heartbeat_at_ms: int | None
    expires_at_ms: int | None
    missing_partitions_count: int
    # The services that it holds back.
    blocks: tuple[str, ...]


def plans(context: Context) -> tuple[PendingPlan, ...]:
    """The pending plans, oldest first; nothing is changed, and a table at rest costs one look."""
    return retrying_view(partial(looked, context), partial(_plans, context))


def _plans(context: Context, snapshot: Snapshot) -> tuple[PendingPlan, ...]:
    pending = [one for one in pending_instants(context, snapshot) if one.action not in _NO_PLANS]
    blockers = find_blockers(context, snapshot) if pending else ()
    return tuple(_plan(context, snapshot, one, blockers) for one in pending)


def _plan(
    context: Context, snapshot: Snapshot, pending: Pending, blockers: tuple[Blocker, ...]
) -> PendingPlan:
    scope, shape = scope_of(snapshot, pending.files), shape_of(snapshot, pending.files)
    claim, heartbeat = pending.ledger.last_claim, pending.heartbeat
    requested_ms = began_at_ms(snapshot, pending.requested)
    return PendingPlan(
        instant=pending.requested,
        service=service_name(pending.action),
        state=pending.state,
        cancellable=pending.action in TABLE_SERVICES and scope.is_cancellable,
        partitions_count=len(shape.partitions),
        file_groups_count=len(shape.groups),
        input_bytes=shape.input_bytes,
        attempt=None if claim is None else claim.attempt,
        owner=None if claim is None else claim.owner,
        host=None if claim is None else claim.host,
        step=heartbeat.step if heartbeat and heartbeat.step else None,
        done_ratio=heartbeat.done / heartbeat.total if heartbeat and heartbeat.total else None,
        requested_at_ms=requested_ms,
        age_seconds=age_seconds(context, requested_ms),
        started_at_ms=None if claim is None else claim.started_at_ms,
        last_heartbeat_at_ms=None if heartbeat is None else heartbeat.at_ms,
        expires_at_ms=None if heartbeat is None else expires_at_ms(context, heartbeat),
        missing_partitions_count=len(scope.missing_partitions),
        blocks=tuple(one.blocked_service for one in blockers if one.instant == pending.requested),
    )
