"""Instant facts: what the storage shows of an instant, gathered for the one function that judges
it.

Asked only about instants that are pending, so that a table at rest costs nothing.
"""

from lakewarden.engine.formats.instant_metadata.codec import TORN_PLAN
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.heartbeats import (
    Heartbeat,
    heartbeat_sign,
    read_first_heartbeat,
    read_heartbeat,
    read_standard_heartbeat,
)
from lakewarden.engine.timeline.instants.state import (
    HeartbeatSign,
    InstantFacts,
    InstantState,
    LedgerEnd,
    PlanFile,
    RollbackOf,
    state_of,
)
from lakewarden.engine.timeline.ledger.ledger import Ledger
from lakewarden.engine.transaction.state.claims import has_surely_ended
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.plan_scope import INGESTION, plan_scope
from lakewarden.engine.transaction.state.rollback_plans import (
    Rollbacks,
    completed_rollback_of,
    is_taken_back,
)
from lakewarden.engine.transaction.state.service import TABLE_SERVICES
from lakewarden.engine.transaction.state.settings import HEARTBEAT_INTERVAL_MS, HEARTBEAT_MISSES


def pending_state(
    context: Context, snapshot: Snapshot, rollbacks: Rollbacks, files: InstantFiles
) -> InstantState:
    """The state of an instant that the timeline shows as pending."""
    return state_of(instant_facts_of(context, snapshot, rollbacks, files))


def instant_facts_of(
    context: Context, snapshot: Snapshot, rollbacks: Rollbacks, files: InstantFiles
) -> InstantFacts:
    """What the storage shows of a pending instant; a few small calls."""
    requested = files.instant.requested
    ledger = snapshot.ledger(requested)
    return InstantFacts(
        completed=files.completed is not None,
        rollback=_rollback_of(snapshot, rollbacks, files, ledger),
        ledger=ledger.ends_in,
        inflight=files.inflight is not None,
        plan=plan_file(snapshot, files),
        heartbeat=newest_heartbeat(context, ledger),
    )


def newest_heartbeat(context: Context, ledger: Ledger) -> HeartbeatSign:
    """The newest heartbeat of an instant: our own of the last attempt, else the standard one.

    An attempt whose process is known to be gone is dead, however fresh its last sign is.
    """
    return heartbeat_of(context, ledger)[0]


def heartbeat_of(context: Context, ledger: Ledger) -> tuple[HeartbeatSign, Heartbeat | None]:
    """The same with the heartbeat itself; without it where none will follow for sure."""
    claim = ledger.last_claim
    if claim is None:
        return _standard_heartbeat(context, ledger.instant)
    try:
        heartbeat = read_heartbeat(context.storage, ledger.instant, claim.attempt)
    except CorruptTable:
        # A crash cut it short; the standard one is as old, and is always whole.
        return _standard_heartbeat(context, ledger.instant)
    if heartbeat is None:
        return HeartbeatSign.NONE, None
    if has_surely_ended(context, claim.process, claim.host):
        return HeartbeatSign.DEAD, None
    misses = context.settings[HEARTBEAT_MISSES]
    return heartbeat_sign((heartbeat,), context.now_ms(), misses), heartbeat


def standard_heartbeat(context: Context, instant: str) -> HeartbeatSign:
    """The heartbeat that Java gives and understands.

    One of ours that died before it had a claim is known by the mark in its first sign.
    """
    return _standard_heartbeat(context, instant)[0]


def _standard_heartbeat(context: Context, instant: str) -> tuple[HeartbeatSign, Heartbeat | None]:
    interval_ms = context.settings[HEARTBEAT_INTERVAL_MS]
    heartbeat = read_standard_heartbeat(context.storage, instant, interval_ms)
    heartbeats = () if heartbeat is None else (heartbeat,)
    sign = heartbeat_sign(heartbeats, context.now_ms(), context.settings[HEARTBEAT_MISSES])
    if sign is HeartbeatSign.LIVE and has_surely_ended(
        context, read_first_heartbeat(context.storage, instant)
    ):
        return HeartbeatSign.DEAD, None
    return sign, heartbeat


def is_recent(context: Context, modified_ms: int) -> bool:
    """Whether something changed so lately that a live attempt need not have said more since."""
    tolerated_ms = context.settings[HEARTBEAT_INTERVAL_MS] * context.settings[HEARTBEAT_MISSES]
    return abs(context.now_ms() - modified_ms) <= tolerated_ms


def _rollback_of(
    snapshot: Snapshot, rollbacks: Rollbacks, files: InstantFiles, ledger: Ledger
) -> RollbackOf:
    requested = files.instant.requested
    if requested in rollbacks.pending:
        return RollbackOf.PENDING
    if ledger.ends_in is LedgerEnd.COMMITTED:
        is_undone = is_taken_back(snapshot.timeline.active, rollbacks, ledger)
        return RollbackOf.COMPLETED if is_undone else RollbackOf.NONE
    if _outlives_rollbacks(files, ledger):
        return RollbackOf.NONE
    if completed_rollback_of(snapshot.timeline.active, requested) is not None:
        return RollbackOf.COMPLETED
    return RollbackOf.NONE


def _outlives_rollbacks(files: InstantFiles, ledger: Ledger) -> bool:
    """Whether a rollback ends only an attempt: the plan of a service stays until cancelled."""
    has_plan = files.requested is not None and files.started_as in TABLE_SERVICES
    return has_plan and ledger.ends_in is not LedgerEnd.CANCELLED


def plan_file(snapshot: Snapshot, files: InstantFiles) -> PlanFile:
    """What is on the timeline of the plan of a pending instant."""
    if files.requested is None:
        return PlanFile.ABSENT
    if files.started_as in INGESTION:
        # There is no plan; the file says all there is to say by being there.
        return PlanFile.WHOLE
    entry = files.requested.entry
    try:
        content = snapshot.timeline.active.read(files.requested.instant)
        plan_scope(files.started_as, content, entry.path)
    except CorruptTable as error:
        if error.code == TORN_PLAN:
            return PlanFile.TORN
        raise
    return PlanFile.WHOLE
