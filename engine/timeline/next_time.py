"""The next time: every time handed out is newer than all that the timeline has seen before."""

from datetime import datetime, timedelta

from lakewarden.engine.kernel.clock import Clock, Zone
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.timeline.instants.instant import epoch_ms, time_text

SKEW_SECONDS_MAX = 300

_MILLISECOND = timedelta(milliseconds=1)
_DIGITS = 17
# An instant of very old writers ends at the second and counts as the last of its milliseconds.
_LAST_MILLISECOND = "999"


class TimeSource:
    """Strictly increasing times for a timeline whose newest one is known; use under the lock.

    A clock that went back, or the local hour that happens twice, is survived by counting on from
    the newest time; a clock further behind than `skew_max_seconds` is refused, since it would go
    on giving times in the past of every reader.
    """

    def __init__(
        self,
        clock: Clock,
        zone: Zone,
        newest: str | None,
        *,
        skew_max_seconds: int = SKEW_SECONDS_MAX,
    ) -> None:
        self._clock = clock
        self._zone = zone
        self._newest = newest
        self._skew_max_seconds = skew_max_seconds
        self._is_ahead = False

    @property
    def newest(self) -> str | None:
        """The newest time on the timeline, as far as this source knows."""
        return self._newest

    @property
    def is_ahead(self) -> bool:
        """Whether the last time was counted on, so that an instant may have had it before.

        What was cancelled leaves the timeline, and its time with it.
        """
        return self._is_ahead

    def move_past(self, time: str | None) -> None:
        """Hand out nothing from now on that is not newer than a time of another timeline."""
        if time is not None and (self._newest is None or time > self._newest):
            self._newest = time

    def next(self) -> str:
        """Now, or one millisecond after the newest time when the clock is not beyond it."""
        now_ms = self._clock.now_ms()
        time = time_text(now_ms, self._zone)
        self._is_ahead = self._newest is not None and time <= self._newest
        if self._newest is not None and time <= self._newest:
            self._check_skew(self._newest, now_ms)
            time = following(self._newest)
        self._newest = time
        return time

    def _check_skew(self, newest: str, now_ms: int) -> None:
        moment_ms = epoch_ms(newest, self._zone)
        skew_seconds = None if moment_ms is None else (moment_ms - now_ms) / 1000
        if skew_seconds is None or skew_seconds > self._skew_max_seconds:
            behind = "an unknown time" if skew_seconds is None else f"{skew_seconds:.3f} s"
            raise Conflict(
                "clock_skew",
                what=f"This machine's clock is {behind} behind {newest}, the table's newest time.",
                why=(
                    f"Lakewarden tolerates {self._skew_max_seconds} s. With more, one of the "
                    "clocks is wrong."
                ),
                now="Correct the clock, or raise lakewarden.clock.skew_max_seconds.",
                newest=newest,
                skew_seconds=skew_seconds,
            )


def following(time: str) -> str:
    """The next text, one millisecond on by the wall clock whatever the zone's rules are."""
    digits = (time + _LAST_MILLISECOND)[:_DIGITS]
    wall = datetime.strptime(digits + "000", "%Y%m%d%H%M%S%f") + _MILLISECOND
    return f"{wall:%Y%m%d%H%M%S}".zfill(_DIGITS - 3) + f"{wall.microsecond // 1000:03d}"
