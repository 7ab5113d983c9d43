"""Dates as Java's pattern letters spell them: the letters that partition paths are made of.

Hudi's timestamp key generators use Joda-Time patterns. Letters that are of no use in a path, like
those for eras and zone names, are refused rather than guessed.

Java's text of a value: what record keys and partition paths are made of.

Numbers, booleans, decimals and dates are spelled as their `toString` in Java; timestamps are
spelled as the number that the file stores, which is what upserts of every kind write. Of floating
point numbers those are refused in whose last digits releases of Java differ.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.widening import java_number
from lakewarden.engine.kernel.clock import UTC, Zone, named_zone
from lakewarden.engine.kernel.errors import InvalidRequest

Column: TypeAlias = pa.Array | pa.ChunkedArray

# From here on, and below these, Java before release 19 writes more digits than a number needs.
_FLOAT_ENDS = (1e-9, 1e7)
_DOUBLE_ENDS = (1e-19, 1e15)


def java_texts(column: Column, name: str) -> Column:
    """The text of each value of the named column; null stays null."""
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_boolean(kind):
        return pc.if_else(column, "true", "false")
    if pa.types.is_timestamp(kind):
        return column.cast(pa.int64()).cast(pa.string())
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return _floating_texts(column, name)
    plain = (pa.types.is_integer, pa.types.is_large_string, pa.types.is_date32)
    if any(matches(kind) for matches in (*plain, pa.types.is_decimal)):
        # Arrow spells decimals as Java does, with their trailing zeros and exponents.
        return column.cast(pa.string())
    raise unsupported_key_type(kind, name)


def _floating_texts(column: Column, name: str) -> pa.Array:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = whole.dictionary_encode()
    single = pa.types.is_float32(column.type)
    texts = [_floating_text(value.as_py(), name, single=single) for value in encoded.dictionary]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _floating_text(value: float, name: str, *, single: bool) -> str:
    least, end = _FLOAT_ENDS if single else _DOUBLE_ENDS
    if value and math.isfinite(value) and not least <= abs(value) < end:
        raise _differing_text(value, name)
    return java_number(np.float32(value) if single else np.float64(value))


def _differing_text(value: float, name: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_key_value",
        what=f"The value {value!r} of column {name!r} cannot be part of a key or partition path.",
        why="Releases of Java spell numbers of this size differently, so a key could appear twice.",
        now="Nothing was written. Make the column a decimal or a text.",
        column=name,
        value=repr(value),
    )


def unsupported_key_type(kind: pa.DataType, name: str) -> InvalidRequest:
    """The error for a column whose values have no text that everybody agrees on."""
    return InvalidRequest(
        "unsupported_key_type",
        what=f"Column {name!r} of type {kind} cannot be part of a key or partition path.",
        why="Engines and releases spell such values differently, so a key could appear twice.",
        now="Cast the column to text, to a whole number, a decimal or a date.",
        column=name,
        type=str(kind),
    )


_TOKEN = re.compile(r"''|'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z'])")
_OFFSET = re.compile(r"(?:GMT|UTC)?([+-])(\d{1,2}):?(\d{2})?")
_MONTHS = (
    "January February March April May June July August September October November December"
).split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_NUMBERS = "yYuMdDHhKkmsS"
_TEXT_FROM = 3


@dataclass(frozen=True, slots=True)
class _Token:
    """A run of one pattern letter, or text that stands for itself."""

    letter: str
    text: str

    @property
    def is_number(self) -> bool:
        return self.letter in _NUMBERS and not (self.letter == "M" and len(self.text) >= _TEXT_FROM)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A date format, parsed."""

    text: str
    tokens: tuple[_Token, ...]

    @property
    def names_zone(self) -> bool:
        """Whether a text of this pattern says how far from UTC it is."""
        return any(token.letter == "Z" for token in self.tokens)

    def format(self, wall: datetime) -> str:
        """The text of a wall-clock time."""
        return "".join(_spelled(token, wall, self.text) for token in self.tokens)

    def parse(self, text: str) -> tuple[datetime, Zone | None] | None:
        """The wall-clock time a text gives, and its zone if it names one; None if it has none."""
        found = re.fullmatch("".join(self._expressions()), text)
        if found is None:
            return None
        values = {name[0]: value for name, value in found.groupdict().items()}
        try:
            return _wall(values), _parsed_zone(values.get("Z"))
        except ValueError:
            return None

    def _expressions(self) -> Iterator[str]:
        following = [*self.tokens[1:], _Token("", "")]
        for place, (token, after) in enumerate(zip(self.tokens, following, strict=True)):
            if not token.letter:
                yield re.escape(token.text)
            elif token.is_number:
                # Beside another number only the letters tell where this one ends.
                digits = f"{{{len(token.text)}}}" if after.is_number else "{1,9}"
                yield f"(?P<{token.letter}{place}>[0-9]{digits})"
            elif token.letter in "ME":
                yield f"(?P<{token.letter}{place}>[A-Za-z]+)"
            elif token.letter == "a":
                yield f"(?P<a{place}>[AaPp][Mm])"
            elif token.letter == "Z":
                yield f"(?P<Z{place}>Z|[+-][0-9]{{2}}:?[0-9]{{2}})"
            else:
                raise _unsupported(token.letter, self.text)


def parse_pattern(text: str) -> Pattern:
    """The tokens of a pattern; an open quote is an error."""
    tokens, at = [], 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise InvalidRequest(
                "bad_date_format",
                what=f"The date format {text!r} has an open quote.",
                why="A quote starts a literal text, which needs a second quote at its end.",
                now="Close the quote, or write two quotes for one.",
                format=text,
            )
        at = found.end()
        if found[2]:
            tokens.append(_Token(found[2], found[0]))
        elif found[0] == "''":
            tokens.append(_Token("", "'"))
        else:
            quoted = found[1] if found[1] is not None else found[3]
            tokens.append(_Token("", quoted.replace("''", "'")))
    return Pattern(text, tuple(tokens))


def java_zone(name: str) -> Zone:
    """A zone as Java names it: `Europe/Oslo`, `UTC`, `GMT+8:00`."""
    if name.upper() in ("UTC", "GMT", "Z"):
        return UTC
    found = _OFFSET.fullmatch(name)
    return named_zone(name) if found is None else _fixed_zone(name, found)


def _fixed_zone(name: str, found: re.Match[str]) -> Zone:
    away = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
    return Zone(name, timezone(-away if found[1] == "-" else away))


def _parsed_zone(text: str | None) -> Zone | None:
    return None if text is None else java_zone(text)


def _spelled(token: _Token, wall: datetime, pattern: str) -> str:
    width = len(token.text)
    match token.letter:
        case "":
            return token.text
        case "y" | "Y" | "u":
            return f"{wall.year % 100:02}" if width == 2 else f"{wall.year:0{width}}"
        case "M" if width > _TEXT_FROM:
            return _MONTHS[wall.month - 1]
        case "M" if width == _TEXT_FROM:
            return _MONTHS[wall.month - 1][:3]
        case "E":
            day = _DAYS[wall.weekday()]
            return day if width > _TEXT_FROM else day[:3]
        case "a":
            return "AM" if wall.hour < 12 else "PM"
        case "S":
            return f"{wall.microsecond // 1000:03}".ljust(width, "0")[:width]
    number = _number(token.letter, wall)
    if number is None:
        raise _unsupported(token.letter, pattern)
    return f"{number:0{width}}"


def _number(letter: str, wall: datetime) -> int | None:
    numbers = {
        "M": wall.month,
        "d": wall.day,
        "D": wall.timetuple().tm_yday,
        "H": wall.hour,
        "h": (wall.hour + 11) % 12 + 1,
        "K": wall.hour % 12,
        "k": wall.hour or 24,
        "m": wall.minute,
        "s": wall.second,
    }
    return numbers.get(letter)


def _wall(values: dict[str, str]) -> datetime:
    """The time that parsed fields make up; what they leave open is that of the epoch."""
    year = int(values.get("y") or values.get("Y") or values.get("u") or 1970)
    fraction = f"{values.get('S', '0')[:6]:0<6}"
    wall = datetime(
        year,
        _month(values.get("M", "1")),
        int(values.get("d", 1)),
        _hour(values),
        int(values.get("m", 0)),
        int(values.get("s", 0)),
        int(fraction) // 1000 * 1000,
    )
    return wall if "D" not in values else wall + timedelta(days=int(values["D"]) - 1)


def _month(text: str) -> int:
    if text.isdigit():
        return int(text)
    short = [month[:3].lower() for month in _MONTHS]
    full = [month.lower() for month in _MONTHS]
    return (full if text.lower() in full else short).index(text.lower()) + 1


def _hour(values: dict[str, str]) -> int:
    if "H" in values or "k" in values:
        return int(values.get("H") or int(values["k"]) % 24)
    half = int(values.get("h") or values.get("K") or 0) % 12
    return half + 12 if values.get("a", "").upper() == "PM" else half


def _unsupported(letter: str, pattern: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_date_format",
        what=(
            f"Lakewarden does not implement the letter {letter!r} of the date format {pattern!r}."
        ),
        why="Partition paths must be exactly those that Hudi writes.",
        now="Use the letters y, M, d, H, h, m, s, S, a, E and D.",
        format=pattern,
    )
