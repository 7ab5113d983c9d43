"""Literals: values as SQL text that Spark compares with a column just as Arrow does.

Where the two would differ, or might, there is no literal, and the comparison is left to Arrow.
"""

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.types as kinds

_DECIMAL_PRECISION_MAX = 38
# Up to here every whole number is a floating-point number, too.
_EXACT_INT_MAX = {pa.float32(): 1 << 24, pa.float64(): 1 << 53}

Spelling = Callable[[object, pa.DataType], str | None]


def literal(value: object, type_: pa.DataType) -> str | None:
    """The value, spelled for comparing it with a column of the type."""
    for matches, spell in _SPELLINGS:
        if matches(type_):
            return spell(value, type_)
    return None


def _text(value: object, _: pa.DataType) -> str | None:
    if not isinstance(value, str):
        return None
    if value.isprintable() and not set(value) & set("\\'"):
        return f"'{value}'"
    # How a quoted text is read depends on a setting of the session; its bytes do not.
    return f"CAST(X'{value.encode().hex()}' AS STRING)"


def _bytes(value: object, _: pa.DataType) -> str | None:
    return f"X'{value.hex()}'" if isinstance(value, bytes) else None


def _boolean(value: object, _: pa.DataType) -> str | None:
    return str(value).upper() if isinstance(value, bool) else None


def _integer(value: object, _: pa.DataType) -> str | None:
    return str(value) if _is_integer(value) else None


def _floating(value: object, type_: pa.DataType) -> str | None:
    if isinstance(value, float) and math.isfinite(value):
        return f"{value!r}D"
    if isinstance(value, int) and _is_integer(value) and abs(value) <= _EXACT_INT_MAX[type_]:
        return f"{value}D"
    return None


def _decimal(value: object, type_: pa.DataType) -> str | None:
    exact = Decimal(str(value)) if _is_integer(value) else value
    if not isinstance(exact, Decimal) or not exact.is_finite():
        return None
    scale = max(-int(exact.as_tuple().exponent), 0)
    whole = max(exact.adjusted() + 1, 1, type_.precision - type_.scale)
    # Both sides are brought to a common type first, which in Spark may round.
    fits = whole + max(scale, type_.scale) <= _DECIMAL_PRECISION_MAX
    return f"{exact:f}BD" if fits else None


def _date(value: object, _: pa.DataType) -> str | None:
    if not isinstance(value, date) or isinstance(value, datetime):
        return None
    return f"DATE '{value.isoformat()}'"


def _timestamp(value: object, type_: pa.DataType) -> str | None:
    if not isinstance(value, datetime) or (value.tzinfo is None) != (type_.tz is None):
        return None
    if value.tzinfo is None:
        return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
    return f"TIMESTAMP '{value.astimezone(UTC).isoformat(sep=' ')}'"


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_SPELLINGS: tuple[tuple[Callable[[pa.DataType], bool], Spelling], ...] = (
    (kinds.is_string, _text),
    (kinds.is_binary, _bytes),
    (kinds.is_boolean, _boolean),
    (kinds.is_integer, _integer),
    (lambda type_: type_ in _EXACT_INT_MAX, _floating),
    (kinds.is_decimal, _decimal),
    (kinds.is_date32, _date),
    (kinds.is_timestamp, _timestamp),
)
