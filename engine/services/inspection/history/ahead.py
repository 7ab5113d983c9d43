"""Ahead and behind: the writes that one of two tables has and the other one lacks."""

from dataclasses import dataclass

from lakewarden.engine.services.inspection.history.history import History
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES


@dataclass(frozen=True, slots=True)
class Lead:
    """How far a table is ahead of another one, or behind it; `instants` are the difference."""

    is_ahead: bool
    instants: tuple[str, ...]


def compare(one: History, other: History) -> Lead:
    """The first table beside the second, by their newest writes."""
    ours, theirs = _newest(one), _newest(other)
    if theirs > ours:
        return Lead(False, _after(other, ours))
    return Lead(True, _after(one, theirs))


def _newest(history: History) -> str:
    """The newest completed write; "" sorts before all, for a table that has none."""
    writes = history.timeline.active.completed(COMPLETED_WRITES)
    return max((instant.requested for instant in writes), default="")


def _after(history: History, time: str) -> tuple[str, ...]:
    """The writes requested after a time, the archived ones of that range, too."""
    active = [one.requested for one in history.timeline.active.completed(COMPLETED_WRITES)]
    archived = [
        one.requested
        for one in history.timeline.archive.instants(since=time)
        if one.action in COMPLETED_WRITES
    ]
    return tuple(sorted({one for one in (*active, *archived) if one > time}))
