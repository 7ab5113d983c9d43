"""Live attempts: who has an instant in hand, as far as signs of life tell."""

from dataclasses import dataclass

from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.evidence import newest_sign
from lakewarden.engine.plans.settings import BEAT_INTERVAL_MS, BEAT_MISSES
from lakewarden.engine.timeline.beats import Beat, read_beat, read_standard_beat
from lakewarden.engine.timeline.ledger import Ledger
from lakewarden.engine.timeline.state import BeatSign

JAVA = "Java Hudi"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveAttempt:
    """An attempt that gives signs of life; of one by Java only the last sign is known."""

    owner: str
    host: str = ""
    attempt: int = 0
    since_ms: int | None = None
    # Without another sign it counts as dead from then on.
    expires_ms: int | None = None
    step: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether it looks at the ledger, so that it stops once it is cancelled."""
        return self.attempt > 0

    def __str__(self) -> str:
        return f"attempt {self.attempt} on {self.host}" if self.is_ours else self.owner


def live_attempt(context: Context, ledger: Ledger) -> LiveAttempt | None:
    """Who has the instant in hand; None when nobody gives a sign of life any more."""
    if newest_sign(context, ledger) is not BeatSign.LIVE:
        return None
    interval_ms, claim = context.settings[BEAT_INTERVAL_MS], ledger.last_claim
    if claim is None:
        standard = read_standard_beat(context.storage, ledger.instant, interval_ms)
        return LiveAttempt(owner=JAVA, expires_ms=_expiry(context, standard))
    try:
        beat = read_beat(context.storage, ledger.instant, claim.attempt)
    except CorruptTable:
        beat = None
    return LiveAttempt(
        owner=claim.owner,
        host=claim.host,
        attempt=claim.attempt,
        since_ms=claim.started_at_ms,
        expires_ms=_expiry(context, beat),
        step="" if beat is None else beat.step,
    )


def _expiry(context: Context, beat: Beat | None) -> int | None:
    return None if beat is None else beat.at_ms + beat.interval_ms * context.settings[BEAT_MISSES]
