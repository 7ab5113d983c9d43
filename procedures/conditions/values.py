"""Values of a condition: what becomes of texts where numbers, times or truth values are meant.

As in SQL without ANSI mode, a text that can't be what is meant gives null, so that one odd row
doesn't end a query. Numbers keep their digits: a text `1.5` is no whole number.
"""

import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TypeAlias

Number: TypeAlias = int | float | Decimal

_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)", re.ASCII)
_TIME = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{1,2})"
    r"(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d{1,9}))?)?"
    r"\s*(?P<zone>Z|UTC|[+-]\d{2}:\d{2})?"
)
_MOMENT = re.compile(
    rf"(?P<year>\d{{4}})(?:-(?P<month>\d{{1,2}})(?:-(?P<day>\d{{1,2}})(?:[T ]{_TIME})?)?)?",
    re.ASCII,
)
_TRUE = ("t", "true", "y", "yes", "1")
_FALSE = ("f", "false", "n", "no", "0")
_TRUTHS = {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}
_MICROSECOND_DIGITS = 6
# Between these Java spells a floating-point number without an exponent.
_PLAIN_FLOATS = (1e-3, 1e7)


def number(value: object) -> Number | None:
    """A number, or the one that a text spells."""
    match value:
        case bool():
            return int(value)
        case int() | float() | Decimal():
            return value
        case str():
            return _parsed_number(value.strip())
        case _:
            return None


def truth(value: object) -> bool | None:
    """A truth value, or the one that a text or number spells."""
    match value:
        case bool():
            return value
        case int() | float() | Decimal():
            return value != 0
        case str():
            return _TRUTHS.get(value.strip().lower())
        case _:
            return None


def moment(value: object) -> datetime | None:
    """A moment; a day is its beginning, and what names no zone is in UTC."""
    match value:
        case datetime():
            return value if value.tzinfo else value.replace(tzinfo=UTC)
        case date():
            return datetime.combine(value, time(), UTC)
        case str():
            return _parsed_moment(value.strip())
        case _:
            return None


def day(value: object) -> date | None:
    """The day of a moment in UTC."""
    found = moment(value)
    return None if found is None else found.astimezone(UTC).date()


def text(value: object) -> str | None:
    """The text of a value, as Spark casts it."""
    match value:
        case None | str():
            return value
        case bool():
            return str(value).lower()
        case float():
            return _float_text(value)
        case Decimal():
            return f"{value:f}"
        case datetime():
            return _moment_text(value)
        case _:
            return str(value)


def compared(left: object, right: object) -> int | None:
    """-1, 0 or 1 as the left one is less, the same or more; None if one of them is unknown."""
    if left is None or right is None:
        return None
    one, other = _alike(left, right)
    if one is None or other is None:
        return None
    if isinstance(one, list | tuple | Mapping):
        return 0 if one == other else 1
    return _order(one, other)


def aligned(left: Number, right: Number) -> tuple[Number, Number]:
    """Two numbers that can be reckoned with together: a float makes the other one a float."""
    if isinstance(left, float) or isinstance(right, float):
        return float(left), float(right)
    return left, right


def _alike(left: object, right: object) -> tuple[object, object]:
    pair = (left, right)
    if any(isinstance(one, bool) for one in pair):
        return truth(left), truth(right)
    if any(isinstance(one, int | float | Decimal) for one in pair):
        one, other = number(left), number(right)
        return (None, None) if one is None or other is None else aligned(one, other)
    if any(isinstance(one, datetime) for one in pair):
        return moment(left), moment(right)
    if any(isinstance(one, date) for one in pair):
        return day(left), day(right)
    return pair


def _order(one: object, other: object) -> int:
    is_less, is_more = _nan(other) - _nan(one), _nan(one) - _nan(other)
    if is_less or is_more or _nan(one):
        # What is not a number is the largest of all, and itself.
        return is_more - is_less if is_less != is_more else 0
    return int(one > other) - int(one < other)  # type: ignore[operator]


def _nan(value: object) -> int:
    return int(isinstance(value, float) and math.isnan(value))


def _parsed_number(spelled: str) -> Number | None:
    if _WHOLE.fullmatch(spelled):
        return int(spelled)
    if _DECIMAL.fullmatch(spelled):
        return Decimal(spelled)
    try:
        return float(spelled) if "_" not in spelled else None
    except ValueError:
        return None


def _parsed_moment(spelled: str) -> datetime | None:
    found = _MOMENT.fullmatch(spelled)
    if found is None:
        return None
    fraction = (found["fraction"] or "").ljust(_MICROSECOND_DIGITS, "0")[:_MICROSECOND_DIGITS]
    month, on_day, hour, minute, second = (int(found[name] or least) for name, least in _FIELDS)
    zone = found["zone"] or "Z"
    try:
        wall = datetime(int(found["year"]), month, on_day, hour, minute, second, int(fraction))
        return datetime.fromisoformat(f"{wall.isoformat()}{'Z' if zone == 'UTC' else zone}")
    except ValueError:
        return None


_FIELDS = (("month", 1), ("day", 1), ("hour", 0), ("minute", 0), ("second", 0))


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    least, most = _PLAIN_FLOATS
    if value == 0 or least <= abs(value) < most:
        return f"{Decimal(repr(value)):f}" if "." in repr(value) else f"{value:.1f}"
    digits = Decimal(repr(value)).normalize().as_tuple()
    head, *rest = map(str, digits.digits)
    exponent = int(digits.exponent) + len(rest)
    return f"{'-' if digits.sign else ''}{head}.{''.join(rest) or '0'}E{exponent}"


def _moment_text(value: datetime) -> str:
    wall = value.astimezone(UTC) if value.tzinfo else value
    fraction = f".{wall.microsecond:06d}".rstrip("0") if wall.microsecond else ""
    return f"{wall:%Y-%m-%d %H:%M:%S}{fraction}"
