"""Arguments of procedures about history, and the spans of time that callers give."""

from typing import Annotated

from lakewarden.engine.kernel.clock import Zone
from lakewarden.engine.read.query.plan_query import parse_time
from lakewarden.engine.services.inspection.history.history import TimeSpan

ShowArchived = Annotated[bool, "Also those that have left the active timeline."]
OfInstant = Annotated[str, "The instant that it is about, active or archived."]
StartTime = Annotated[str, "Only instants requested then or later: an instant, or a date."]
EndTime = Annotated[str, "Only instants requested then or earlier: an instant, or a date."]


_INSTANT_DIGITS = 17
_DAY_DIGITS = 8
_DAY_LENGTH = len("2026-11-18")


def span_of(start: str, end: str, zone: Zone) -> TimeSpan:
    """The span between two times, both included; an end that is a day or an hour means all of it.

    So from `2026-11-17` to `20261118` are two days.
    """
    return TimeSpan(_start(start.strip(), zone), _end(end.strip(), zone))


def _start(text: str, zone: Zone) -> str | None:
    return text if text.isdecimal() else parse_time(text or None, zone)


def _end(text: str, zone: Zone) -> str | None:
    if text.isdecimal():
        return text.ljust(_INSTANT_DIGITS, "9")
    time = parse_time(text or None, zone)
    if time is None or len(text) > _DAY_LENGTH:
        return time
    return time[:_DAY_DIGITS].ljust(_INSTANT_DIGITS, "9")
