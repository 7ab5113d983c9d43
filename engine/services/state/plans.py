"""Pending plans of all services, as values for tables."""

from dataclasses import dataclass
from functools import partial

from lakewarden.engine.plans.cancelling import scope_of
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.plan_scope import INGESTION
from lakewarden.engine.plans.service import TABLE_SERVICES
from lakewarden.engine.services.state.blockers import Blocker, find_blockers
from lakewarden.engine.services.state.pending import (
    Pending,
    age_seconds,
    began_at_ms,
    expires_at_ms,
    looked,
    pending_instants,
    service_name,
)
from lakewarden.engine.services.state.shape import shape_of
from lakewarden.engine.snapshot import Snapshot, retrying
from lakewarden.engine.timeline.instant import Action
from lakewarden.engine.timeline.state import InstantState

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
    last_beat_at_ms: int | None
    expires_at_ms: int | None
    missing_partitions_count: int
    # The services that it holds back.
    blocks: tuple[str, ...]


def plans(context: Context) -> tuple[PendingPlan, ...]:
    """The pending plans, oldest first; nothing is changed, and a table at rest costs one look."""
    return retrying(partial(looked, context), partial(_plans, context))


def _plans(context: Context, moment: Snapshot) -> tuple[PendingPlan, ...]:
    pending = [one for one in pending_instants(context, moment) if one.action not in _NO_PLANS]
    blockers = find_blockers(context, moment) if pending else ()
    return tuple(_plan(context, moment, one, blockers) for one in pending)


def _plan(
    context: Context, moment: Snapshot, pending: Pending, blockers: tuple[Blocker, ...]
) -> PendingPlan:
    scope, shape = scope_of(moment, pending.files), shape_of(moment, pending.files)
    claim, beat = pending.ledger.last_claim, pending.beat
    requested_ms = began_at_ms(moment, pending.requested)
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
        step=beat.step if beat and beat.step else None,
        done_ratio=beat.done / beat.total if beat and beat.total else None,
        requested_at_ms=requested_ms,
        age_seconds=age_seconds(context, requested_ms),
        started_at_ms=None if claim is None else claim.started_at_ms,
        last_beat_at_ms=None if beat is None else beat.at_ms,
        expires_at_ms=None if beat is None else expires_at_ms(context, beat),
        missing_partitions_count=len(scope.missing_partitions),
        blocks=tuple(one.blocked_service for one in blockers if one.instant == pending.requested),
    )
