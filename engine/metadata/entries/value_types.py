"""Value types of statistics: how bounds of a column's type stand in a metadata record.

A bound is wrapped by its physical type, and a number says what it means. Before release 1.1 there
was no such number, and the wrapper said it all; tables from then go on like that. In between,
bounds are plain values that compare as the column's values do: a decimal is its unscaled integer.
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import TypeAlias

import pyarrow as pa

Bound: TypeAlias = bool | int | float | str | bytes

_NULL, _INT, _LONG, _FLOAT, _DOUBLE, _DECIMAL = 1, 3, 4, 5, 6, 10
# Wider than any decimal of Arrow.
_EXACT = Context(prec=100)

# How Arrow holds what is in a wrapper.
WRAPPERS: dict[str, pa.DataType] = {
    "BooleanWrapper": pa.bool_(),
    "IntWrapper": pa.int32(),
    "LongWrapper": pa.int64(),
    "FloatWrapper": pa.float32(),
    "DoubleWrapper": pa.float64(),
    "BytesWrapper": pa.binary(),
    "StringWrapper": pa.string(),
    "DateWrapper": pa.int32(),
    "TimestampMicrosWrapper": pa.int64(),
}
_WRAPPER_OF = {
    2: "BooleanWrapper",
    **dict.fromkeys((_INT, 12, 13), "IntWrapper"),
    **dict.fromkeys((_LONG, 14, 15, 16, 17, 18, 19, 20), "LongWrapper"),
    _FLOAT: "FloatWrapper",
    _DOUBLE: "DoubleWrapper",
    **dict.fromkeys((7, 11), "StringWrapper"),
    **dict.fromkeys((8, 9, _DECIMAL), "BytesWrapper"),
}
# Types of which it is certain how Java wrote them before there were value types.
_EARLY_WRAPPER_OF = {
    2: "BooleanWrapper",
    _INT: "IntWrapper",
    _LONG: "LongWrapper",
    _FLOAT: "FloatWrapper",
    _DOUBLE: "DoubleWrapper",
    7: "StringWrapper",
    12: "DateWrapper",
    16: "TimestampMicrosWrapper",
}
_EARLY_MEANING = {wrapper: ordinal for ordinal, wrapper in _EARLY_WRAPPER_OF.items()}
_PLAIN = {
    pa.bool_(): 2,
    **dict.fromkeys((pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32()), _INT),
    **dict.fromkeys((pa.uint32(), pa.int64()), _LONG),
    **dict.fromkeys((pa.float16(), pa.float32()), _FLOAT),
    pa.float64(): _DOUBLE,
    **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), 7),
    **dict.fromkeys((pa.binary(), pa.large_binary(), pa.binary_view()), 8),
    pa.date32(): 12,
    pa.time32("ms"): 13,
    pa.time64("us"): 14,
}
_IN_UTC = {"ms": 15, "us": 16, "ns": 17}
_LOCAL = {"ms": 18, "us": 19, "ns": 20}
# What holds every value of both, exactly.
_WIDER = {
    frozenset({_INT, _LONG}): _LONG,
    frozenset({_INT, _DOUBLE}): _DOUBLE,
    frozenset({_FLOAT, _DOUBLE}): _DOUBLE,
}


@dataclass(frozen=True, slots=True)
class ValueType:
    """The meaning of bounds by its number in the format; a decimal adds precision and scale."""

    ordinal: int
    detail: str | None = None

    def wrapper(self, *, is_early: bool) -> str | None:
        """The record that wraps such a bound; None if none does."""
        return (_EARLY_WRAPPER_OF if is_early else _WRAPPER_OF).get(self.ordinal)

    @property
    def digits(self) -> tuple[int, int]:
        """Precision and scale of a decimal."""
        precision, _, scale = (self.detail or "0,0").partition(",")
        return int(precision), int(scale)

    def stored(self, bound: Bound) -> Bound:
        """A plain bound as it stands in its wrapper."""
        if self.ordinal != _DECIMAL or not isinstance(bound, int):
            return bound
        size = (bound + (bound < 0)).bit_length() // 8 + 1
        return bound.to_bytes(size, "big", signed=True)

    def plain(self, stored: Bound) -> Bound:
        """What stands in a wrapper as a plain bound."""
        if self.ordinal == _DECIMAL and isinstance(stored, bytes):
            return int.from_bytes(stored, "big", signed=True)
        return stored


# Of a file in which no value was seen, not even null.
NOTHING_SEEN = ValueType(_NULL)


def value_type(type_: pa.DataType) -> ValueType | None:
    """How statistics of a column are kept; None for a type that Java keeps none of."""
    if pa.types.is_decimal(type_):
        return ValueType(_DECIMAL, f"{type_.precision},{type_.scale}")
    if pa.types.is_timestamp(type_):
        ordinal = (_IN_UTC if type_.tz else _LOCAL).get(type_.unit)
    elif pa.types.is_fixed_size_binary(type_):
        ordinal = 9
    else:
        ordinal = _PLAIN.get(type_)
    return None if ordinal is None else ValueType(ordinal)


def early_value_type(wrapper: str | None) -> ValueType | None:
    """What a wrapper without a value type means; None where that is not certain."""
    if wrapper is None:
        return NOTHING_SEEN
    ordinal = _EARLY_MEANING.get(wrapper)
    return None if ordinal is None else ValueType(ordinal)


def plain_bound(scalar: pa.Scalar) -> Bound | None:
    """A scalar as a plain bound; None for null."""
    if not scalar.is_valid:
        return None
    type_ = scalar.type
    if pa.types.is_temporal(type_):
        whole: int = scalar.value
        return whole
    value = scalar.as_py()
    if isinstance(value, Decimal):
        return int(value.scaleb(type_.scale, _EXACT))
    assert isinstance(value, bool | int | float | str | bytes)
    return value


def common_type(one: ValueType, other: ValueType) -> ValueType | None:
    """A type that holds the bounds of both exactly, if there is one."""
    if one == other:
        return one
    if one.ordinal == other.ordinal == _DECIMAL:
        (precision, scale), (other_precision, other_scale) = one.digits, other.digits
        wide_scale = max(scale, other_scale)
        whole = max(precision - scale, other_precision - other_scale)
        return ValueType(_DECIMAL, f"{whole + wide_scale},{wide_scale}")
    ordinal = _WIDER.get(frozenset({one.ordinal, other.ordinal}))
    return None if ordinal is None else ValueType(ordinal)


def converted(bound: Bound, from_: ValueType, to: ValueType) -> Bound:
    """A plain bound in a type that `common_type` has found for it."""
    if from_ == to:
        return bound
    if to.ordinal == _DECIMAL and isinstance(bound, int):
        factor: int = 10 ** (to.digits[1] - from_.digits[1])
        return bound * factor
    return float(bound) if to.ordinal == _DOUBLE else bound


def order_of(bound: Bound) -> tuple[bool, Bound]:
    """What bounds are compared by: NaN is larger than any number, as it is to Spark."""
    is_nan = isinstance(bound, float) and math.isnan(bound)
    return (True, 0) if is_nan else (False, bound)
