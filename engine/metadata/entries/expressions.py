"""Expressions of indexes: the functions that Hudi has for them, evaluated exactly as Spark does.

Wall-clock times are those of one zone, which is that of the Spark session to Java. What cannot be
computed exactly is refused by name, before anything is written: regular expressions are Java's own,
and texts become times by rules of Spark's that depend on its settings.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.kernel.clock import UTC, Zone
from lakewarden.engine.kernel.errors import InvalidRequest

IDENTITY = "identity"
_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_QUARTER_SECONDS, _DAY_SECONDS = 900, 86_400
# Quarters of an hour that are looked at together: no zone changes its offset twice in as many.
_SPAN_QUARTERS = 256
# Farther than the wall clocks of any zone are from each other.
_APART_SECONDS = 2 * _DAY_SECONDS
# The seconds of years of four digits, less what clocks differ by: texts of these are in order.
_TEXT_SECONDS_MIN, _TEXT_SECONDS_MAX = -30_610_051_200, 253_402_128_000
_INT64_MAX = (1 << 63) - 1
# The years 9000 and 1000, well within those that Python knows, and 400 years.
_SECONDS_MAX, _SECONDS_MIN, _CYCLE_SECONDS = 221_845_392_000, -30_610_224_000, 12_622_780_800
_DEFAULT_FORMAT = "yyyy-MM-dd HH:mm:ss"
_LETTERS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_TOKEN = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|.", re.DOTALL)
_YEAR_LAST = 9999
# An open quote, and what has a meaning in Java's formats.
_RESERVED = frozenset("'#{}[]")

# The options of each function.
_OPTIONS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys((IDENTITY, "lower", "upper", "length"), frozenset()),
    **dict.fromkeys(("year", "month", "day", "hour"), frozenset()),
    **dict.fromkeys(("trim", "ltrim", "rtrim"), frozenset({"trimString"})),
    **dict.fromkeys(("from_unixtime", "unix_timestamp", "date_format"), frozenset({"format"})),
    **dict.fromkeys(("to_date", "to_timestamp"), frozenset({"format"})),
    **dict.fromkeys(("date_add", "date_sub"), frozenset({"days"})),
    "substring": frozenset({"pos", "len"}),
    "regexp_extract": frozenset({"pattern", "idx"}),
    "regexp_replace": frozenset({"pattern", "replacement"}),
    "split": frozenset({"pattern"}),
}
FUNCTIONS = frozenset(_OPTIONS)
# Of moments, those whose results are in the order of the wall clock; these texts may be.
_TO_TEXT = frozenset({"from_unixtime", "date_format"})
_ORDERED = _TO_TEXT | {"year", "to_date", "date_add", "date_sub"}
# Java's regular expressions are not Python's.
_INEXACT = frozenset({"regexp_extract", "regexp_replace", "split"})


Quarters = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class IndexExpression:
    """A function of one column; travels to other processes."""

    function: str
    options: Mapping[str, str]
    zone: Zone = UTC

    def refusal(self, type_: pa.DataType) -> str | None:
        """Why it cannot be evaluated on values of a type; None if it can."""
        known = _OPTIONS.get(self.function)
        if known is None:
            return f"Hudi has no function {self.function!r} for indexes."
        if self.function in _INEXACT:
            return f"{self.function} takes Java's regular expressions, which Python does not have."
        if "format" in self.options and (letter := _bad_letter(self.options["format"])):
            return f"The format has the letters {letter!r}; only {', '.join(_LETTERS)} are exact."
        if not _TAKES[self.function](type_):
            return f"{self.function} of a column of type {type_} is not exactly Spark's."
        return None

    def of(self, values: pa.Array | pa.ChunkedArray) -> pa.Array:
        """The function of some values; null of null."""
        column = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        if pa.types.is_dictionary(column.type):
            encoded = column
            return self.of(encoded.dictionary).take(encoded.indices)
        return _WORKS[self.function](self, column)

    def extremes(self, values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        """Some of the values, among them one with the least result and one with the largest.

        Of moments whose order the function keeps, those near the two ends will do: what lies days
        apart is in the same order on the wall clock of any zone.
        """
        unit = _units(values.type)
        if unit is None or self.function not in _ORDERED or len(values) == values.null_count:
            return values
        moments = values.cast(pa.int64())
        low, high = (bound.as_py() for bound in pc.min_max(moments).values())
        if self.function in _TO_TEXT and not self._has_ordered_texts(low // unit, high // unit):
            return values
        margin = _APART_SECONDS * unit
        first, last = min(low + margin, _INT64_MAX), max(high - margin, -_INT64_MAX)
        near = pc.or_(pc.less_equal(moments, first), pc.greater_equal(moments, last))
        return values.filter(near)

    @property
    def makes_text_of_moments(self) -> bool:
        """Whether its results are texts of times, of which not all are in the times' order."""
        return self.function in _TO_TEXT

    def keeps_order(self, values: pa.Array) -> bool:
        """Whether, in UTC, larger values than these have results that are no smaller than theirs.

        Texts of times have to begin with the year. Those of years beyond four digits are smaller.
        """
        if not len(values):
            return False
        if self.function not in _TO_TEXT:
            return self.function in _ORDERED or self.function in (IDENTITY, "unix_timestamp")
        if not self.text("format", _DEFAULT_FORMAT).startswith("yyyy"):
            return False
        seconds = _wall_seconds(values)
        return self._has_ordered_texts(pc.min(seconds).as_py(), pc.max(seconds).as_py())

    def _has_ordered_texts(self, low: int, high: int) -> bool:
        """Whether texts of seconds from low to high are in the order of the seconds."""
        format_ = self.text("format", _DEFAULT_FORMAT)
        runs = [found[0] for found in _TOKEN.finditer(format_) if found[1]]
        is_ordered = bool(runs) and runs == list(_LETTERS)[: len(runs)]
        return is_ordered and low >= _TEXT_SECONDS_MIN and high < _TEXT_SECONDS_MAX

    def text(self, name: str, default: str | None = None) -> str:
        """An option's text."""
        given = self.options.get(name, default)
        if given is None:
            raise InvalidRequest(
                "missing_index_option",
                what=f"The index function {self.function} has no option {name!r}.",
                why="Without it the function is not defined.",
                now="Drop the index and create it with that option.",
                option=name,
            )
        return given


def unknown_options(function: str, options: Mapping[str, str]) -> tuple[str, ...]:
    """The options that a function does not take."""
    return tuple(sorted(options.keys() - _OPTIONS.get(function, frozenset())))


def _lower(expression: IndexExpression, column: pa.Array) -> pa.Array:
    return _cased(column, pc.ascii_lower, str.lower)


def _upper(expression: IndexExpression, column: pa.Array) -> pa.Array:
    return _cased(column, pc.ascii_upper, str.upper)


def _cased(
    column: pa.Array, plain: Callable[[pa.Array], pa.Array], full: Callable[[str], str]
) -> pa.Array:
    """Java's letters, some of which become two; Arrow's kernels for all letters miss those."""
    if pc.all(pc.string_is_ascii(column)).as_py() is not False:
        return plain(column.cast(pa.string()))
    return _of_distinct(column, full)


def _of_distinct(column: pa.Array, work: Callable[[str], str]) -> pa.Array:
    encoded = pc.dictionary_encode(column)
    texts = [work(text) for text in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _trimmed(kernel: Callable[..., pa.Array]) -> Callable[[IndexExpression, pa.Array], pa.Array]:
    def work(expression: IndexExpression, column: pa.Array) -> pa.Array:
        return kernel(column.cast(pa.string()), characters=expression.text("trimString", " "))

    return work


def _length(expression: IndexExpression, column: pa.Array) -> pa.Array:
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    count = pc.utf8_length if is_text else pc.binary_length
    return count(column).cast(pa.int32())


def _substring(expression: IndexExpression, column: pa.Array) -> pa.Array:
    """Places count from 1, or from the end; zero is the first place as well."""
    place, count = int(expression.text("pos")), int(expression.text("len"))
    column = column.cast(pa.string())
    if place >= 0:
        start = max(place - 1, 0)
        return pc.utf8_slice_codeunits(column, start, max(start + count, start))

    def cut(text: str) -> str:
        start = len(text) + place
        return text[max(start, 0) : max(start + count, 0)]

    return _of_distinct(column, cut)


def _part(
    kernel: Callable[[pa.Array], pa.Array],
) -> Callable[[IndexExpression, pa.Array], pa.Array]:
    def work(expression: IndexExpression, column: pa.Array) -> pa.Array:
        return kernel(_wall(expression, column)).cast(pa.int32())

    return work


def _date_moved(sign: int) -> Callable[[IndexExpression, pa.Array], pa.Array]:
    def work(expression: IndexExpression, column: pa.Array) -> pa.Array:
        days = sign * int(expression.text("days"))
        return pc.add(_date(expression, column).cast(pa.int32()), pa.scalar(days, pa.int32())).cast(
            pa.date32()
        )

    return work


def _date(expression: IndexExpression, column: pa.Array) -> pa.Array:
    if pa.types.is_date32(column.type):
        return column
    seconds = _wall(expression, column).cast(pa.int64())
    return _floor_divided(seconds, _DAY_SECONDS).cast(pa.int32()).cast(pa.date32())


def _from_unixtime(expression: IndexExpression, column: pa.Array) -> pa.Array:
    seconds = column.cast(pa.int64())
    moments = _in_zone(seconds, expression.zone)
    return _formatted(moments, expression.text("format", _DEFAULT_FORMAT))


def _date_format(expression: IndexExpression, column: pa.Array) -> pa.Array:
    return _formatted(_wall(expression, column), expression.text("format"))


def _unix_timestamp(expression: IndexExpression, column: pa.Array) -> pa.Array:
    """Seconds since the epoch; Spark drops the fraction, before the epoch as after it."""
    return pc.divide(column.cast(pa.int64()), _UNITS[column.type.unit])


def _same(expression: IndexExpression, column: pa.Array) -> pa.Array:
    return column


def _wall(expression: IndexExpression, column: pa.Array) -> pa.Array:
    """Wall-clock times in whole seconds; dates are at midnight, times without zone as they are."""
    if pa.types.is_date32(column.type):
        return column.cast(pa.timestamp("s"))
    seconds = _seconds(column)
    if column.type.tz is None:
        return seconds.cast(pa.timestamp("s"))
    return _in_zone(seconds, expression.zone)


def _wall_seconds(column: pa.Array) -> pa.Array:
    """Seconds of the wall clock in UTC, of numbers, days and moments."""
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    if pa.types.is_date32(column.type):
        column = column.cast(pa.timestamp("s"))
    return _seconds(column)


def _seconds(column: pa.Array) -> pa.Array:
    """Seconds since the epoch, rounded down."""
    return _floor_divided(column.cast(pa.int64()), _UNITS[column.type.unit])


def _floor_divided(numbers: pa.Array, by: int) -> pa.Array:
    filled = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False)
    nulls = pc.is_null(numbers).to_numpy(zero_copy_only=False)
    return pa.array(filled // by, pa.int64(), mask=nulls)


def _in_zone(seconds: pa.Array, zone: Zone) -> pa.Array:
    """The wall-clock times of moments; offsets change at quarters of hours only."""
    if zone == UTC:
        return seconds.cast(pa.timestamp("s"))
    encoded = pc.dictionary_encode(_floor_divided(seconds, _QUARTER_SECONDS))
    offsets = _offsets(encoded.dictionary.to_numpy(), zone)
    moved = pc.add(seconds, pa.array(offsets, pa.int64()).take(encoded.indices))
    return moved.cast(pa.timestamp("s"))


def _offsets(quarters: Quarters, zone: Zone) -> Quarters:
    """The offsets at some quarters of hours; only of spans with a change each quarter is asked."""
    spans, of_span = np.unique(quarters // _SPAN_QUARTERS, return_inverse=True)
    edges = np.union1d(spans, spans + 1)
    asked = [_offset_seconds(edge * _SPAN_QUARTERS, zone) for edge in edges.tolist()]
    at_edges = np.array(asked, np.int64)
    first = at_edges[np.searchsorted(edges, spans)]
    found = first[of_span]
    has_change = first != at_edges[np.searchsorted(edges, spans + 1)]
    for at in np.flatnonzero(has_change[of_span]).tolist():
        found[at] = _offset_seconds(int(quarters[at]), zone)
    return found


def _offset_seconds(quarter: int, zone: Zone) -> int:
    """How far a zone is from UTC then; far off it is as in the nearest cycle of the calendar."""
    seconds = quarter * _QUARTER_SECONDS
    beyond = max(seconds - _SECONDS_MAX, 0) - max(_SECONDS_MIN - seconds, 0)
    cycles = -(-abs(beyond) // _CYCLE_SECONDS)
    moment_ms = (seconds - (cycles if beyond > 0 else -cycles) * _CYCLE_SECONDS) * 1000
    away = zone.wall(moment_ms) - UTC.wall(moment_ms)
    return round(away.total_seconds())


def _formatted(moments: pa.Array, format_: str) -> pa.Array:
    """Texts of wall-clock times; years beyond four digits have a sign, as in Java."""
    spelled = _strftime(format_)
    years = pc.year(moments)
    texts = pc.strftime(moments, format=spelled)
    for year in pc.unique(years).to_pylist():
        if year is None or 1 <= year <= _YEAR_LAST:
            continue
        own = f"+{year}" if year > _YEAR_LAST else f"{1 - year:04}"
        chosen = pc.equal(years, year)
        texts = pc.if_else(chosen, pc.strftime(moments, format=spelled.replace("%Y", own)), texts)
    return texts


def _strftime(format_: str) -> str:
    return "".join(_spelled(found) for found in _TOKEN.finditer(format_))


def _spelled(found: re.Match[str]) -> str:
    if found[1]:
        return _LETTERS[found[0]]
    quoted = found[2]
    plain = found[0] if quoted is None else quoted.replace("''", "'") or "'"
    return plain.replace("%", "%%")


def _bad_letter(format_: str) -> str | None:
    found = (one[0] for one in _TOKEN.finditer(format_) if one[1] or one[0] in _RESERVED)
    return next((run for run in found if run not in _LETTERS), None)


def _units(type_: pa.DataType) -> int | None:
    """How many make a second, of what counts moments."""
    if pa.types.is_timestamp(type_):
        return _UNITS[type_.unit]
    return 1 if pa.types.is_signed_integer(type_) else None


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _is_day_or_moment(type_: pa.DataType) -> bool:
    return bool(pa.types.is_date32(type_) or pa.types.is_timestamp(type_))


def _is_zoned(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) and type_.tz is not None)


_TAKES: Mapping[str, Callable[[pa.DataType], bool]] = {
    IDENTITY: lambda type_: not pa.types.is_nested(type_),
    **dict.fromkeys(("lower", "upper", "trim", "ltrim", "rtrim", "substring"), _is_text),
    "length": lambda type_: _is_text(type_) or pa.types.is_binary(type_),
    **dict.fromkeys(("year", "month", "day", "hour", "date_format"), _is_day_or_moment),
    **dict.fromkeys(("to_date", "date_add", "date_sub"), _is_day_or_moment),
    "to_timestamp": _is_zoned,
    "unix_timestamp": _is_zoned,
    "from_unixtime": pa.types.is_integer,
}
_WORKS: Mapping[str, Callable[[IndexExpression, pa.Array], pa.Array]] = {
    IDENTITY: _same,
    "lower": _lower,
    "upper": _upper,
    "trim": _trimmed(pc.utf8_trim),
    "ltrim": _trimmed(pc.utf8_ltrim),
    "rtrim": _trimmed(pc.utf8_rtrim),
    "length": _length,
    "substring": _substring,
    "year": _part(pc.year),
    "month": _part(pc.month),
    "day": _part(pc.day),
    "hour": _part(pc.hour),
    "date_format": _date_format,
    "to_date": _date,
    "to_timestamp": _same,
    "date_add": _date_moved(1),
    "date_sub": _date_moved(-1),
    "unix_timestamp": _unix_timestamp,
    "from_unixtime": _from_unixtime,
}
