"""Phases: how long each part of a write took."""

from collections.abc import Iterator
from contextlib import contextmanager

from lakewarden.engine.kernel.clock import Clock
from lakewarden.engine.kernel.events import PROGRESS, Event, EventSink


class Phases:
    """Adds up seconds by phase, in the order in which phases first came."""

    def __init__(self, clock: Clock, events: EventSink) -> None:
        self._clock = clock
        self._events = events
        self._seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        started = self._clock.elapsed_seconds()
        self._events(Event(PROGRESS, {"step": name}))
        try:
            yield
        finally:
            spent = self._clock.elapsed_seconds() - started
            self._seconds[name] = self._seconds.get(name, 0.0) + spent
            self._events(Event(f"write.{name}", {"seconds": spent}))

    @property
    def seconds(self) -> dict[str, float]:
        return dict(self._seconds)
