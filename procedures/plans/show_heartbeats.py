"""`show_heartbeats`: the heartbeats that are on storage."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from lakewarden.engine.services.inspection.state.attempts import HeartbeatView
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import procedure
from lakewarden.procedures.declaring.moments import moment_of
from lakewarden.procedures.plans.instant_call import InstantCall


@procedure("show_heartbeats")
class ShowHeartbeats(InstantCall):
    """Who has sent heartbeats, of which instant, and until when they count."""

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
        for heartbeat in self.opened(caller).heartbeats():
            if self.instant in (None, heartbeat.instant):
                yield _row(heartbeat)


def _row(heartbeat: HeartbeatView) -> ShowHeartbeats.Row:
    return ShowHeartbeats.Row(
        instant=heartbeat.instant,
        attempt=heartbeat.attempt,
        owner=heartbeat.owner,
        state="live" if heartbeat.is_live else "expired",
        step=heartbeat.step or None,
        done_ratio=heartbeat.done / heartbeat.total if heartbeat.total else None,
        at=moment_of(heartbeat.at_ms),
        age_seconds=heartbeat.age_seconds,
        interval_seconds=heartbeat.interval_ms / 1000,
        expires_at=moment_of(heartbeat.expires_at_ms),
    )
