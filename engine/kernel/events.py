"""The event port: what the engine reports about its work while it runs.

Events are values for the sink that the caller passed; nothing is logged globally.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened: a name, and its figures."""

    name: str
    figures: Mapping[str, int | float | str] = field(default_factory=dict)


EventSink = Callable[[Event], None]


def ignore(event: Event) -> None:
    """The sink of a caller who does not want to know."""


class EventLog:
    """A sink that keeps what it heard, for progress displays and tests."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def named(self, name: str) -> tuple[Event, ...]:
        return tuple(event for event in self.events if event.name == name)
