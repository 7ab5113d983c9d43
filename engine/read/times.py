"""Times that callers give: instants of the timeline, or dates and times in the table's zone."""

from datetime import datetime

from lakewarden.engine.kernel.errors import InvalidRequest

_FULL, _SECONDS = 17, 14


def parse_time(text: str | None) -> str | None:
    """A caller's time as an instant; shorter instants and ISO texts mean the end of their span."""
    if text is None:
        return None
    if text.isdigit():
        # An instant of whole seconds means the last millisecond of its second, as in Java.
        return text.ljust(_FULL, "9") if len(text) >= _SECONDS else text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidRequest(
            "bad_time",
            what=f"{text!r} is no time of a timeline.",
            why="A time is an instant such as 20261118101500123, or '2026-11-18 10:15:00'.",
            now="Take one from the timeline.",
        ) from None
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"
