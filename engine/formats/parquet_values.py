"""Physical values in parquet statistics: made comparable, and typed as Arrow types them.

Going by way of the physical value keeps what Python's own dates and decimals cannot hold: instants
beyond the year 9999, nanoseconds, 38 digits.
"""

import math
from decimal import Context, Decimal
from typing import TypeAlias

import pyarrow as pa

Comparable: TypeAlias = bool | int | float | bytes

# More digits than any decimal of Arrow has.
_EXACT = Context(prec=100)


def comparable(raw: object, type_: pa.DataType) -> Comparable | None:
    """A physical value in the order of its column's type; None for what has no order."""
    if pa.types.is_decimal(type_) and isinstance(raw, bytes):
        return int.from_bytes(raw, "big", signed=True)
    if pa.types.is_unsigned_integer(type_) and isinstance(raw, int):
        width: int = type_.bit_width
        return raw % (1 << width)
    if isinstance(raw, float) and math.isnan(raw):
        return None
    if pa.types.is_float16(type_) or pa.types.is_null(type_):
        return None
    return raw if isinstance(raw, bool | int | float | bytes) else None


def as_scalar(value: Comparable, type_: pa.DataType) -> pa.Scalar | None:
    """A comparable value as a scalar of its column's type; None when it is no value of it."""
    try:
        if pa.types.is_decimal(type_) and isinstance(value, int):
            return pa.scalar(Decimal(value).scaleb(-type_.scale, _EXACT), type_)
        if pa.types.is_string(type_) and isinstance(value, bytes):
            return pa.scalar(value.decode(), type_)
        return pa.scalar(value, type_)
    except (pa.ArrowException, ValueError, OverflowError, TypeError):
        return None
