"""Evidence: what the storage shows of an instant, gathered for the one function that judges it.

Asked only about instants that are pending, so that a table at rest costs nothing.
"""

from lakewarden.engine.formats.payloads.codec import TORN_PLAN
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.plans.claims import has_surely_ended
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.plan_scope import INGESTION, plan_scope
from lakewarden.engine.plans.rollback_plans import (
    Rollbacks,
    completed_rollback_of,
    is_taken_back,
)
from lakewarden.engine.plans.service import TABLE_SERVICES
from lakewarden.engine.plans.settings import BEAT_INTERVAL_MS, BEAT_MISSES
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.beats import (
    read_beat,
    read_first_sign,
    read_standard_beat,
    sign_of,
)
from lakewarden.engine.timeline.ledger import Ledger
from lakewarden.engine.timeline.state import (
    BeatSign,
    Evidence,
    InstantState,
    LedgerEnd,
    PlanFile,
    RollbackOf,
    state_of,
)


def pending_state(
    context: Context, moment: Snapshot, rollbacks: Rollbacks, files: InstantFiles
) -> InstantState:
    """The state of an instant that the timeline shows as pending."""
    return state_of(evidence_of(context, moment, rollbacks, files))


def evidence_of(
    context: Context, moment: Snapshot, rollbacks: Rollbacks, files: InstantFiles
) -> Evidence:
    """What the storage shows of a pending instant; a few small calls."""
    requested = files.instant.requested
    ledger = moment.ledger(requested)
    return Evidence(
        completed=files.completed is not None,
        rollback=_rollback_of(moment, rollbacks, files, ledger),
        ledger=ledger.ends_in,
        inflight=files.inflight is not None,
        plan=plan_file(moment, files),
        beat=newest_sign(context, ledger),
    )


def newest_sign(context: Context, ledger: Ledger) -> BeatSign:
    """The newest sign of life of an instant: our own of the last attempt, else the standard one.

    An attempt whose process is known to be gone is dead, however fresh its last sign is.
    """
    claim = ledger.last_claim
    if claim is None:
        return standard_sign(context, ledger.instant)
    try:
        beat = read_beat(context.storage, ledger.instant, claim.attempt)
    except CorruptTable:
        # It was cut short by a crash; the standard one is as old, and cannot be.
        return standard_sign(context, ledger.instant)
    if beat is None:
        return BeatSign.NONE
    if has_surely_ended(context, claim.process, claim.host):
        return BeatSign.DEAD
    return sign_of((beat,), context.now_ms(), context.settings[BEAT_MISSES])


def standard_sign(context: Context, instant: str) -> BeatSign:
    """The sign of life that Java gives and understands.

    One of ours that died before it had a claim is known by the mark in its first sign.
    """
    interval_ms = context.settings[BEAT_INTERVAL_MS]
    beat = read_standard_beat(context.storage, instant, interval_ms)
    beats = () if beat is None else (beat,)
    sign = sign_of(beats, context.now_ms(), context.settings[BEAT_MISSES])
    if sign is BeatSign.LIVE and has_surely_ended(
        context, read_first_sign(context.storage, instant)
    ):
        return BeatSign.DEAD
    return sign


def is_recent(context: Context, modified_ms: int) -> bool:
    """Whether something changed so lately that a live attempt need not have said more since."""
    tolerated_ms = context.settings[BEAT_INTERVAL_MS] * context.settings[BEAT_MISSES]
    return abs(context.now_ms() - modified_ms) <= tolerated_ms


def _rollback_of(
    moment: Snapshot, rollbacks: Rollbacks, files: InstantFiles, ledger: Ledger
) -> RollbackOf:
    requested = files.instant.requested
    if requested in rollbacks.pending:
        return RollbackOf.PENDING
    if ledger.ends_in is LedgerEnd.COMMITTED:
        is_undone = is_taken_back(moment.timeline.active, rollbacks, ledger)
        return RollbackOf.COMPLETED if is_undone else RollbackOf.NONE
    if _outlives_rollbacks(files, ledger):
        return RollbackOf.NONE
    if completed_rollback_of(moment.timeline.active, requested) is not None:
        return RollbackOf.COMPLETED
    return RollbackOf.NONE


def _outlives_rollbacks(files: InstantFiles, ledger: Ledger) -> bool:
    """Whether a rollback ends only an attempt: the plan of a service stays until cancelled."""
    has_plan = files.requested is not None and files.begun_as in TABLE_SERVICES
    return has_plan and ledger.ends_in is not LedgerEnd.CANCELLED


def plan_file(moment: Snapshot, files: InstantFiles) -> PlanFile:
    """What is on the timeline of the plan of a pending instant."""
    if files.requested is None:
        return PlanFile.ABSENT
    if files.begun_as in INGESTION:
        # There is no plan; the file says all there is to say by being there.
        return PlanFile.WHOLE
    entry = files.requested.entry
    try:
        content = moment.timeline.active.read(files.requested.instant)
        plan_scope(files.begun_as, content, entry.path)
    except CorruptTable as error:
        if error.code == TORN_PLAN:
            return PlanFile.TORN
        raise
    return PlanFile.WHOLE
