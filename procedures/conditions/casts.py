"""Casts: a value as another type; what can't be one is null, as in SQL's TRY_CAST."""

from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Decimal

from sqlglot import exp

from lakewarden.procedures.conditions.expression import ValueKind
from lakewarden.procedures.conditions.values import day, moment, number, text, truth

_Type = exp.DataType.Type
_WHOLE_BITS = {_Type.TINYINT: 8, _Type.SMALLINT: 16, _Type.INT: 32, _Type.BIGINT: 64}
_MOMENTS = (_Type.TIMESTAMP, _Type.TIMESTAMPTZ, _Type.TIMESTAMPLTZ, _Type.TIMESTAMPNTZ)
_TEXTS = (_Type.TEXT, _Type.VARCHAR, _Type.CHAR)
_DECIMAL_DEFAULT = (10, 0)

Cast = Callable[[object], object]


def cast_to(type_: exp.DataType) -> tuple[ValueKind, Cast] | None:
    """What a cast to a type does, and what it gives; None for a type that conditions lack."""
    if type_.this in _WHOLE_BITS:
        return ValueKind.NUMBER, _whole(_WHOLE_BITS[type_.this])
    if type_.this is _Type.DECIMAL:
        return ValueKind.NUMBER, _decimal(type_)
    return _PLAIN.get(type_.this)


def _whole(bits: int) -> Cast:
    def cast(value: object) -> object:
        found = number(value)
        if found is None or not Decimal(found).is_finite():
            return None
        whole = int(found)
        return whole if -(1 << (bits - 1)) <= whole < 1 << (bits - 1) else None

    return cast


def _decimal(type_: exp.DataType) -> Cast:
    given = tuple(int(one.name) for one in type_.expressions)
    digits, places = (given + _DECIMAL_DEFAULT[len(given) :])[:2]

    def cast(value: object) -> object:
        found = number(value)
        if found is None:
            return None
        near = Decimal(repr(found) if isinstance(found, float) else found)
        if not near.is_finite() or near.adjusted() >= digits - places:
            return None
        return near.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)

    return cast


def _floating(value: object) -> object:
    found = number(value)
    return None if found is None else float(found)


_PLAIN: Mapping[object, tuple[ValueKind, Cast]] = {
    _Type.DOUBLE: (ValueKind.NUMBER, _floating),
    _Type.FLOAT: (ValueKind.NUMBER, _floating),
    _Type.BOOLEAN: (ValueKind.TRUTH, truth),
    _Type.DATE: (ValueKind.MOMENT, day),
    **dict.fromkeys(_TEXTS, (ValueKind.TEXT, text)),
    **dict.fromkeys(_MOMENTS, (ValueKind.MOMENT, moment)),
}
