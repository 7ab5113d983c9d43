"""Live attempts and writes: who has an instant in hand, as far as heartbeats and markers show.

Instant facts: what the storage shows of an instant, gathered for the one function that judges
it.

Asked only about instants that are pending, so that a table at rest costs nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lakewarden.engine.conflicts.touched_groups import Touched
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata.binding import TORN_PLAN
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.heartbeats import (
    Heartbeat,
    heartbeat_sign,
    read_first_heartbeat,
    read_heartbeat,
    read_standard_heartbeat,
)
from lakewarden.engine.timeline.instants.instant import Instant, InstantFiles
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
from lakewarden.engine.transaction.state.context import TABLE_SERVICES, Context
from lakewarden.engine.transaction.state.markers import announced_groups
from lakewarden.engine.transaction.state.plan_scope import INGESTION, plan_scope
from lakewarden.engine.transaction.state.rollback_plans import (
    Rollbacks,
    completed_rollback_of,
    is_taken_back,
)
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


JAVA = "Java Hudi"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveAttempt:
    """An attempt that sends heartbeats; of one by Java only the last sign is known."""

    owner: str
    host: str = ""
    attempt: int = 0
    since_ms: int | None = None
    # The moment of its last heartbeat; without another one it counts as dead from then on.
    beaten_at_ms: int | None = None
    expires_ms: int | None = None
    step: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether it looks at the ledger, so that it stops once it is cancelled."""
        return self.attempt > 0

    def __str__(self) -> str:
        return f"attempt {self.attempt} on {self.host}" if self.is_ours else self.owner


def live_attempt(context: Context, ledger: Ledger) -> LiveAttempt | None:
    """The live attempt at the instant; None when there are no fresh heartbeats."""
    sign, heartbeat = heartbeat_of(context, ledger)
    return _attempt(context, ledger, heartbeat) if sign is HeartbeatSign.LIVE else None


class Pulses:
    """Live attempts for one who looks again and again, however far the clocks are apart.

    By the age of its heartbeat an attempt on a machine whose clock is minutes off looks dead. It is
    alive all the same while one heartbeat follows the other.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        # The last heartbeat of each instant, and when it was seen to have followed another one.
        self._last: dict[str, tuple[Heartbeat, float | None]] = {}

    def live_attempt(self, ledger: Ledger) -> LiveAttempt | None:
        """The live attempt at the instant; None as far as its heartbeats have shown none."""
        sign, heartbeat = heartbeat_of(self._context, ledger)
        goes_on = heartbeat is not None and self._goes_on(heartbeat)
        is_live = sign is HeartbeatSign.LIVE or goes_on
        return _attempt(self._context, ledger, heartbeat) if is_live else None

    def _goes_on(self, heartbeat: Heartbeat) -> bool:
        now = self._context.ports.clock.elapsed_seconds()
        last, followed_at = self._last.get(heartbeat.instant, (heartbeat, None))
        if last != heartbeat:
            followed_at = now
        self._last[heartbeat.instant] = heartbeat, followed_at
        lasts_ms = heartbeat.interval_ms * self._context.settings[HEARTBEAT_MISSES]
        return followed_at is not None and (now - followed_at) * 1000 <= lasts_ms


def _attempt(context: Context, ledger: Ledger, heartbeat: Heartbeat | None) -> LiveAttempt:
    claim = ledger.last_claim
    beaten_at_ms = None if heartbeat is None else heartbeat.at_ms
    expires_ms = _expiry(context, heartbeat)
    if claim is None:
        return LiveAttempt(owner=JAVA, beaten_at_ms=beaten_at_ms, expires_ms=expires_ms)
    return LiveAttempt(
        owner=claim.owner,
        host=claim.host,
        attempt=claim.attempt,
        since_ms=claim.started_at_ms,
        beaten_at_ms=beaten_at_ms,
        expires_ms=expires_ms,
        step="" if heartbeat is None else heartbeat.step,
    )


def _expiry(context: Context, heartbeat: Heartbeat | None) -> int | None:
    return (
        None
        if heartbeat is None
        else heartbeat.at_ms + heartbeat.interval_ms * context.settings[HEARTBEAT_MISSES]
    )


def live_writes(
    context: Context, snapshot: Snapshot, groups: frozenset[FileGroupId]
) -> Mapping[Instant, Touched]:
    """What live writes have announced that they touch, asked for the sake of some file groups.

    Nothing for a table at rest.
    """
    found: dict[Instant, Touched] = {}
    for instant in snapshot.timeline.active.pending(INGESTION):
        ledger = snapshot.ledger(instant.requested)
        is_over = ledger.ends_in is LedgerEnd.CANCELLED
        if not is_over and newest_heartbeat(context, ledger) is HeartbeatSign.LIVE:
            announced = announced_groups(context.storage, snapshot, instant)
            found[instant] = announced.with_those_among(groups)
    return found
