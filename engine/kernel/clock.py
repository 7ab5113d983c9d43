"""The clock port: the only source of time and of waiting in the engine.

Time zones: the only place that asks for the machine's local time.

Instants are wall-clock texts. A table says in which zone they were written: UTC, or the local zone
of its writers, which is taken to be the zone of this machine unless another one is passed in.
"""

import time
from dataclasses import dataclass
from datetime import UTC as _UTC_RULES
from datetime import datetime, timedelta, tzinfo
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lakewarden.engine.kernel.errors import InvalidRequest


class Clock(Protocol):
    """Wall-clock milliseconds since the epoch, elapsed seconds, and waiting."""

    def now_ms(self) -> int: ...

    def elapsed_seconds(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def elapsed_seconds(self) -> float:
        return time.perf_counter()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class ManualClock:
    """A clock that moves only by `advance` and by sleeps."""

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = start_ms
        self._start_ms = start_ms

    def now_ms(self) -> int:
        return self._now_ms

    def elapsed_seconds(self) -> float:
        return (self._now_ms - self._start_ms) / 1000

    def sleep(self, seconds: float) -> None:
        self.advance(round(seconds * 1000))

    def advance(self, milliseconds: int) -> None:
        self._now_ms += milliseconds


_EPOCH = datetime(1970, 1, 1, tzinfo=_UTC_RULES)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Zone:
    """Rules between wall-clock time and the time line; no rules means those of this machine."""

    name: str
    rules: tzinfo | None

    def epoch_ms(self, wall: datetime) -> int:
        """Milliseconds since the epoch of a wall-clock time.

        Of a time that happened twice the first is meant, and one that was skipped is read with
        the offset from before the change; both as in Java.
        """
        if self.rules is None:
            return round(wall.timestamp() * 1000)
        return (wall.replace(tzinfo=self.rules) - _EPOCH) // _MILLISECOND

    def wall(self, epoch_ms: int) -> datetime:
        """The wall-clock time at a number of milliseconds since the epoch."""
        moment = _EPOCH + epoch_ms * _MILLISECOND
        return moment.astimezone(self.rules).replace(tzinfo=None)


UTC = Zone("UTC", _UTC_RULES)
LOCAL = Zone("LOCAL", None)


def named_zone(name: str) -> Zone:
    """The zone of that name in the time zone database, as `America/Chicago`."""
    try:
        return Zone(name, ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InvalidRequest(
            "unknown_time_zone",
            what=f"There is no time zone {name!r}.",
            why="It is not in the time zone database of this machine.",
            now="Use a name like Europe/Berlin.",
            zone=name,
        ) from error
