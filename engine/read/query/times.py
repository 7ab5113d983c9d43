"""Times that callers give: instants of the timeline, or dates and times in the table's zone."""

from datetime import datetime
from typing import TypeAlias

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.zones import Zone

Time: TypeAlias = str | datetime

_FULL, _SECONDS = 17, 14


def parse_time(given: Time | None, zone: Zone) -> str | None:
    """A caller's time as an instant; shorter instants and ISO texts mean the end of their span.

    What says its own zone is taken to that of the table.
    """
    if given is None:
        return None
    if isinstance(given, str) and given.isdecimal():
        # An instant of whole seconds means the last millisecond of its second, as in Java.
        return given.ljust(_FULL, "9") if len(given) >= _SECONDS else given
    moment = _moment(given)
    if moment.tzinfo is not None:
        moment = zone.wall(round(moment.timestamp() * 1000))
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"


def required_time(given: Time, zone: Zone) -> str:
    """The same for a time that can't be skipped."""
    time = parse_time(given, zone)
    if time is None:
        raise _bad_time(given)
    return time


def _moment(given: object) -> datetime:
    if isinstance(given, datetime):
        return given
    try:
        return datetime.fromisoformat(given if isinstance(given, str) else "")
    except ValueError:
        raise _bad_time(given) from None


def _bad_time(given: object) -> InvalidRequest:
    return InvalidRequest(
        "bad_time",
        what=f"{given!r} is not a time of the timeline.",
        why=(
            "A time is an instant such as '20261118101500123', '2026-11-18 10:15:00', or a "
            "datetime."
        ),
        now="Take one from the timeline.",
    )
