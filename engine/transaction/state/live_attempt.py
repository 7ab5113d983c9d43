"""Live attempts and writes: who has an instant in hand, as far as heartbeats and markers show."""

from collections.abc import Mapping
from dataclasses import dataclass

from lakewarden.engine.conflicts.touched_groups import Touched
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.heartbeats import Heartbeat
from lakewarden.engine.timeline.instants.instant import Instant
from lakewarden.engine.timeline.instants.state import HeartbeatSign, LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import Ledger
from lakewarden.engine.transaction.state.announced_groups import announced_groups
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.instant_facts import heartbeat_of, newest_heartbeat
from lakewarden.engine.transaction.state.plan_scope import INGESTION
from lakewarden.engine.transaction.state.settings import HEARTBEAT_MISSES

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
