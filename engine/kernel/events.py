"""The event port: what the engine reports about its work while it runs.

Events are values for the sink that the caller passed. Without one they go to Python's logger
`lakewarden`, a sentence each: waits, retries, recoveries, and what gave way.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Figures: TypeAlias = Mapping[str, int | float | str]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened: a name, and its figures."""

    name: str
    figures: Figures = field(default_factory=dict)


EventSink = Callable[[Event], None]

# How far a piece of work is: its action and instant where it has one, the step, done of total.
PROGRESS = "progress"
# The attempt at an instant is over, whatever came of it.
ATTEMPT_ENDED = "attempt_ended"
PLAN_GAVE_WAY = "plan_gave_way"

_LOG = logging.getLogger("lakewarden")
_LATER = "What is left is removed by a later write or clean."
# Level and sentence of what someone who reads a log at night wants to know.
_SENTENCES: Mapping[str, tuple[int, str]] = {
    "lock_waited": (
        logging.WARNING,
        "Waiting for the %(lock)s for %(waited).1f s, and for %(left).0f s more at most: "
        "%(reason)s.",
    ),
    "lock_not_released": (
        logging.WARNING,
        "Releasing the %(lock)s failed and is tried again: %(reason)s",
    ),
    "stale_lock_broken": (
        logging.WARNING,
        "Broke the %(lock)s, which %(owner)s no longer keeps alive.",
    ),
    "write_retried": (
        logging.INFO,
        "The write begins again after %(code)s; tries left: %(left)d. %(reason)s",
    ),
    "early_look_failed": (
        logging.INFO,
        "Looking for rivals of the write %(instant)s failed and is tried again: %(reason)s",
    ),
    "rival_waited": (
        logging.WARNING,
        "Waiting for the %(rival)s%(by)s for %(waited).0f s, and for %(left).0f s more at most.",
    ),
    "stream_batch": (
        logging.INFO,
        "Batch %(batch)d of the stream %(stream)s: %(rows)d rows, %(inserted)d inserted, "
        "%(updated)d updated, %(deleted)d deleted, %(keys_found)d of %(keys)d keys found in the "
        "record index, %(keys_cached)d looked up in memory, in %(seconds).2f s (%(phases)s).",
    ),
    "key_snapshot_failed": (
        logging.WARNING,
        "The keys in %(folder)s could not be read or saved, which costs time only: %(reason)s",
    ),
    "stream_batch_repeated": (
        logging.INFO,
        "Batch %(batch)d of the stream %(stream)s is in the table already, by %(instant)s.",
    ),
    "recovered": (
        logging.INFO,
        "The %(action)s %(instant)s was left pending, and is %(repair)s now.",
    ),
    PLAN_GAVE_WAY: (logging.INFO, "The plan %(plan)s gave way to %(to)s."),
    "committed_not_published": (
        logging.WARNING,
        "The instant %(instant)s is committed; the next reader or writer publishes it: %(reason)s",
    ),
    "left_for_later": (
        logging.INFO,
        f"Tidying up after %(instant)s failed: %(reason)s {_LATER}",
    ),
    "service_left": (
        logging.WARNING,
        "The %(service)s beside writes was left for a later one: %(reason)s",
    ),
    "beat_left_behind": (
        logging.INFO,
        "Removing a heartbeat failed and is tried again: %(reason)s",
    ),
}


def log_event(event: Event) -> None:
    """The sink of a caller who gave none: the logger `lakewarden`."""
    known = _SENTENCES.get(event.name)
    if known is not None and _LOG.isEnabledFor(known[0]):
        level, sentence = known
        _LOG.log(level, sentence, dict(event.figures), extra={"event": event.name})


class EventLog:
    """A sink that keeps what it heard, for progress displays and tests."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def named(self, name: str) -> tuple[Event, ...]:
        return tuple(event for event in self.events if event.name == name)
