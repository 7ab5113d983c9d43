"""The clock port: the only source of time and of waiting in the engine."""

import time
from typing import Protocol


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
