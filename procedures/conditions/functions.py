"""The functions that a condition may use: a fixed list, each as in Spark."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from functools import lru_cache

from lakewarden.engine.read.conditions.parsing import bad_filter
from lakewarden.engine.table.keygen.java_dates import Pattern, parse_pattern
from lakewarden.procedures.conditions.expression import PLAIN, ValueKind
from lakewarden.procedures.conditions.values import compared, day, moment, number, text

_ANY = frozenset(ValueKind)
_LISTS = frozenset({ValueKind.LIST, ValueKind.NOTHING})
_MAPS = frozenset({ValueKind.MAP, ValueKind.NOTHING})
_SIZED = _LISTS | _MAPS


@dataclass(frozen=True, slots=True)
class Function:
    """A function: what it takes and gives; null for a null argument unless it `sees_null`."""

    kind: ValueKind
    takes: tuple[frozenset[ValueKind], ...]
    work: Callable[..., object]
    optional: int = 0
    sees_null: bool = False

    @property
    def fewest(self) -> int:
        return len(self.takes) - self.optional

    def of(self, values: Sequence[object]) -> object:
        if not self.sees_null and any(value is None for value in values):
            return None
        return self.work(*values)


def _texts(work: Callable[[str], object]) -> Callable[[object], object]:
    def apply(value: object) -> object:
        found = text(value)
        return None if found is None else work(found)

    return apply


def _part(name: str) -> Callable[[object], object]:
    def apply(value: object) -> object:
        found = moment(value)
        return None if found is None else getattr(found.astimezone(UTC), name)

    return apply


def _substring(value: object, start: object, length: object = None) -> object:
    whole, first, count = text(value) or "", number(start), number(length)
    if first is None or (length is not None and count is None):
        return None
    begin = int(first) - 1 if first > 0 else len(whole) + int(first) if first < 0 else 0
    end = len(whole) if count is None else begin + int(count)
    return whole[max(begin, 0) : max(end, 0)]


def _absolute(value: object) -> object:
    found = number(value)
    return None if found is None else abs(found)


def _rounded(value: object, digits: object = 0) -> object:
    found, places = number(value), number(digits)
    if found is None or places is None or _is_endless(found):
        return found
    step = Decimal(1).scaleb(-int(places))
    near = Decimal(repr(found) if isinstance(found, float) else found)
    whole = (near / step).quantize(Decimal(1), ROUND_HALF_UP) * step
    return type(found)(whole)


def _whole(rounding: str) -> Callable[[object], object]:
    def apply(value: object) -> object:
        found = number(value)
        if found is None or _is_endless(found):
            return None
        return int(Decimal(found).to_integral_value(rounding))

    return apply


def _is_endless(value: int | float | Decimal) -> bool:
    return not Decimal(value).is_finite()


def _extracted(value: object, pattern: object, group: object = 1) -> object:
    found = compiled(text(pattern) or "").search(text(value) or "")
    place = number(group)
    if place is None:
        return None
    if found is None:
        return ""
    try:
        return found.group(int(place)) or ""
    except IndexError:
        raise _no_group(text(pattern) or "", int(place)) from None


def matches(value: object, pattern: object) -> object:
    """Whether a regular expression is found in a text."""
    if value is None or pattern is None:
        return None
    return compiled(text(pattern) or "").search(text(value) or "") is not None


def _formatted(value: object, pattern: object) -> object:
    found = moment(value)
    if found is None:
        return None
    wall = found.astimezone(UTC).replace(tzinfo=None)
    return _pattern(text(pattern) or "").format(wall)


def _days_between(end: object, start: object) -> object:
    last, first = day(end), day(start)
    return None if last is None or first is None else (last - first).days


def _contains(values: Sequence[object], wanted: object) -> object:
    if any(compared(value, wanted) == 0 for value in values):
        return True
    return None if None in values else False


def _element(values: object, wanted: object) -> object:
    if isinstance(values, Mapping):
        return values.get(wanted)
    place = number(wanted)
    if not isinstance(values, list | tuple) or place is None:
        return None
    index = int(place) - 1 if place > 0 else int(place)
    return values[index] if place and -len(values) <= index < len(values) else None


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    """A regular expression; an error says what is wrong with it."""
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise bad_filter(
            f"{pattern!r} is not a regular expression.", f"{error}.", "Correct it in the filter."
        ) from None


@lru_cache(maxsize=256)
def _pattern(spelled: str) -> Pattern:
    return parse_pattern(spelled)


def _no_group(pattern: str, group: int) -> Exception:
    return bad_filter(
        f"{pattern!r} has no group {group}.",
        "regexp_extract returns the match of a group in parentheses.",
        "Use group 0 for the whole match, or add parentheses.",
    )


_TEXT_TO_TEXT: Mapping[str, Callable[[str], object]] = {
    "upper": str.upper,
    "lower": str.lower,
    "trim": lambda found: found.strip(" "),
    "ltrim": lambda found: found.lstrip(" "),
    "rtrim": lambda found: found.rstrip(" "),
}
_PARTS = {"year": "year", "month": "month", "day": "day", "dayofmonth": "day", "hour": "hour"}
_PARTS |= {"minute": "minute", "second": "second"}

FUNCTIONS: Mapping[str, Function] = {
    **{
        name: Function(ValueKind.TEXT, (PLAIN,), _texts(work))
        for name, work in _TEXT_TO_TEXT.items()
    },
    **{name: Function(ValueKind.NUMBER, (PLAIN,), _part(part)) for name, part in _PARTS.items()},
    "length": Function(ValueKind.NUMBER, (PLAIN,), _texts(len)),
    "substring": Function(ValueKind.TEXT, (PLAIN, PLAIN, PLAIN), _substring, optional=1),
    "substr": Function(ValueKind.TEXT, (PLAIN, PLAIN, PLAIN), _substring, optional=1),
    "concat": Function(
        ValueKind.TEXT, (PLAIN,) * 9, lambda *parts: "".join(text(part) or "" for part in parts), 8
    ),
    "abs": Function(ValueKind.NUMBER, (PLAIN,), _absolute),
    "round": Function(ValueKind.NUMBER, (PLAIN, PLAIN), _rounded, optional=1),
    "ceil": Function(ValueKind.NUMBER, (PLAIN,), _whole(ROUND_CEILING)),
    "floor": Function(ValueKind.NUMBER, (PLAIN,), _whole(ROUND_FLOOR)),
    "date_format": Function(ValueKind.TEXT, (PLAIN, PLAIN), _formatted),
    "datediff": Function(ValueKind.NUMBER, (PLAIN, PLAIN), _days_between),
    "to_date": Function(ValueKind.MOMENT, (PLAIN,), day),
    "regexp_extract": Function(ValueKind.TEXT, (PLAIN, PLAIN, PLAIN), _extracted, optional=1),
    "regexp_like": Function(ValueKind.TRUTH, (PLAIN, PLAIN), matches),
    "isnull": Function(ValueKind.TRUTH, (_ANY,), lambda value: value is None, sees_null=True),
    "isnotnull": Function(
        ValueKind.TRUTH, (_ANY,), lambda value: value is not None, sees_null=True
    ),
    "size": Function(ValueKind.NUMBER, (_SIZED,), len),
    "array_contains": Function(ValueKind.TRUTH, (_LISTS, PLAIN), _contains),
    "element_at": Function(ValueKind.TEXT, (_SIZED, PLAIN), _element),
    "map_keys": Function(ValueKind.LIST, (_MAPS,), lambda found: list(found)),
    "map_values": Function(ValueKind.LIST, (_MAPS,), lambda found: list(found.values())),
    "map_contains_key": Function(ValueKind.TRUTH, (_MAPS, PLAIN), lambda found, key: key in found),
}
