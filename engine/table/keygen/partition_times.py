"""Timestamp key generators: a partition column holds a moment, its path is a formatted date."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import pyarrow as pa

from lakewarden.engine.kernel.clock import LOCAL, UTC, Zone
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.keygen.java_dates import Pattern, java_zone, parse_pattern

PREFIX = "hoodie.keygen.timebased."
_OLD_PREFIX = "hoodie.deltastreamer.keygen.timebased."
_EPOCH = date(1970, 1, 1)
# Milliseconds in a unit, as a fraction: numerator and denominator.
_UNITS = {
    "NANOSECONDS": (1, 1_000_000),
    "MICROSECONDS": (1, 1000),
    "MILLISECONDS": (1, 1),
    "SECONDS": (1000, 1),
    "MINUTES": (60_000, 1),
    "HOURS": (3_600_000, 1),
    "DAYS": (86_400_000, 1),
}
_UNIT_OF_TYPE = {
    "UNIX_TIMESTAMP": "SECONDS",
    "EPOCHMILLISECONDS": "MILLISECONDS",
    "EPOCHMICROSECONDS": "MICROSECONDS",
}
_TEXT_TYPES = ("DATE_STRING", "MIXED")
# What Java puts in place of a missing value: this many units after the epoch.
_NULL_STANDS_FOR = 1


@dataclass(frozen=True, slots=True)
class PartitionClock:
    """How values of a partition column become dates in paths."""

    # None where values are texts only.
    unit: str | None
    output: Pattern
    output_zone: Zone | None
    inputs: tuple[Pattern, ...] = ()
    input_zone: Zone | None = None

    def texts(self, values: pa.Array, name: str) -> list[str]:
        """The formatted date of each value of the named column."""
        number = _number_of(values.type)
        if number is None and not pa.types.is_string(values.type):
            raise _not_a_time(name, values.type)
        return [
            self._formatted(value.as_py() if value.is_valid else None, number, name)
            for value in _plain(values)
        ]

    def _formatted(self, value: object, number: Callable[[object], int] | None, name: str) -> str:
        try:
            if isinstance(value, str):
                return self._of_text(value, name)
            if value is None and self.inputs:
                return self._of_nothing(name)
            amount = _NULL_STANDS_FOR if value is None or number is None else number(value)
            return self.output.format((self.output_zone or LOCAL).wall(self._epoch_ms(amount)))
        except OverflowError:
            raise _unreadable(value, name, "it is outside the years 1 to 9999") from None

    def _of_nothing(self, name: str) -> str:
        """The date of a missing text: Java spells the default moment in the first input format."""
        zone = self.input_zone or self.output_zone or UTC
        wall = zone.wall(_NULL_STANDS_FOR)
        if self.inputs[0].names_zone:
            return self.output.format((self.output_zone or zone).wall(_NULL_STANDS_FOR))
        return self._of_text(self.inputs[0].format(wall), name)

    def _epoch_ms(self, amount: int) -> int:
        if self.unit is None:
            raise InvalidRequest(
                "missing_time_unit",
                what=f"{PREFIX}timestamp.type says that the partition column holds text.",
                why="The column holds numbers, and no option says their unit.",
                now=f"Correct {PREFIX}timestamp.type.",
            )
        numerator, denominator = _UNITS[self.unit]
        scaled = abs(amount) * numerator // denominator
        # Java's units truncate towards zero.
        return scaled if amount >= 0 else -scaled

    def _of_text(self, text: str, name: str) -> str:
        for pattern in self.inputs:
            parsed = pattern.parse(text)
            if parsed is not None:
                wall, own_zone = parsed
                zone = own_zone or self.input_zone or LOCAL
                shown_in = self.output_zone or self.input_zone or zone
                return self.output.format(shown_in.wall(zone.epoch_ms(wall)))
        raise _unreadable(text, name, "it does not look like " + _formats(self.inputs))


def partition_clock(options: Mapping[str, str]) -> PartitionClock:
    """The generator that table properties or write options describe."""
    kind = _option(options, "timestamp.type").upper()
    output = parse_pattern(_option(options, "output.dateformat"))
    both = _option(options, "timezone", "") if _has(options, "timezone") else None
    output_zone = _zone(both if both is not None else _option(options, "output.timezone", ""))
    input_zone = _zone(both if both is not None else _option(options, "input.timezone", ""))
    if kind in _TEXT_TYPES:
        listed = _option(options, "input.dateformat")
        inputs = tuple(parse_pattern(one.strip()) for one in listed.split(_delimiter(options)))
        return PartitionClock(None, output, output_zone, inputs, input_zone)
    unit = _UNIT_OF_TYPE.get(kind)
    if kind == "SCALAR":
        unit = _option(options, "timestamp.scalar.time.unit", "SECONDS").upper()
    if unit not in _UNITS:
        raise InvalidRequest(
            "bad_timestamp_type",
            what=f"Lakewarden does not have {PREFIX}timestamp.type {kind} with the unit {unit}.",
            why=(
                f"It can be {', '.join((*_UNIT_OF_TYPE, *_TEXT_TYPES))} or SCALAR. A unit is "
                f"one of {', '.join(_UNITS).lower()}."
            ),
            now=f"Correct {PREFIX}timestamp.type.",
        )
    return PartitionClock(unit, output, output_zone)


def _delimiter(options: Mapping[str, str]) -> str:
    return _option(options, "input.dateformat.list.delimiter.regex", ",") or ","


def _has(options: Mapping[str, str], name: str) -> bool:
    return PREFIX + name in options or _OLD_PREFIX + name in options


def _option(options: Mapping[str, str], name: str, default: str | None = None) -> str:
    value = options.get(PREFIX + name, options.get(_OLD_PREFIX + name, default))
    if value is None:
        raise InvalidRequest(
            "missing_option",
            what=f"The table's key generator needs {PREFIX}{name}.",
            why="A partition column holds times, and no option says how a path spells them.",
            now="Pass the option to the write: tables with CUSTOM keys do not store it.",
            option=PREFIX + name,
        )
    return value


def _zone(name: str) -> Zone | None:
    return java_zone(name.strip()) if name.strip() else None


def _number_of(kind: pa.DataType) -> Callable[[object], int] | None:
    """How a value of this type becomes the number that Java counts with."""
    if pa.types.is_date32(kind):
        return lambda value: (value - _EPOCH).days if isinstance(value, date) else 0
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
        return lambda value: value if isinstance(value, int) else 0
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return lambda value: int(value) if isinstance(value, float | Decimal) else 0
    return None


def _plain(values: pa.Array) -> pa.Array:
    """Timestamps as the numbers that files store."""
    return values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values


def _formats(patterns: Sequence[Pattern]) -> str:
    return " or ".join(repr(pattern.text) for pattern in patterns) or "any known format"


def _not_a_time(name: str, kind: pa.DataType) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_key_type",
        what=f"Partition column {name!r} of type {kind} does not hold times.",
        why="The table's key generator takes numbers, dates, timestamps and texts.",
        now="Cast the column to one of these.",
        column=name,
        type=str(kind),
    )


def _unreadable(value: object, name: str, why: str) -> InvalidRequest:
    return InvalidRequest(
        "bad_partition_value",
        what=f"{value!r} in partition column {name!r} is not a time.",
        why=f"The table's key generator refuses it: {why}.",
        now="Nothing was written. Correct the value.",
        column=name,
        value=str(value),
    )
