"""`show_heartbeats`: the signs of life that are on storage."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from lakewarden.engine.services.state.attempts import BeatView
from lakewarden.procedures.caller import Caller
from lakewarden.procedures.declaration import procedure
from lakewarden.procedures.moments import moment_of
from lakewarden.procedures.plans.instant_call import InstantCall


@procedure("show_heartbeats")
class ShowHeartbeats(InstantCall):
    """Who has given signs of life, of which instant, and until when they count."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant: str
        attempt: Annotated[int, "0 for the heartbeat that Java Hudi writes and reads."]
        owner: str
        state: Annotated[str, "live or expired"]
        step: str | None
        done_ratio: Annotated[float | None, "The progress, from 0 to 1."]
        at: datetime | None
        age_seconds: float | None
        interval_seconds: float
        expires_at: datetime | None

    def run(self, caller: Caller) -> Iterable[Row]:
        for beat in self.opened(caller).beats():
            if self.instant in (None, beat.instant):
                yield _row(beat)


def _row(beat: BeatView) -> ShowHeartbeats.Row:
    return ShowHeartbeats.Row(
        instant=beat.instant,
        attempt=beat.attempt,
        owner=beat.owner,
        state="live" if beat.is_live else "expired",
        step=beat.step or None,
        done_ratio=beat.done / beat.total if beat.total else None,
        at=moment_of(beat.at_ms),
        age_seconds=beat.age_seconds,
        interval_seconds=beat.interval_ms / 1000,
        expires_at=moment_of(beat.expires_at_ms),
    )
