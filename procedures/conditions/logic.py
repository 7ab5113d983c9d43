"""SQL's logic of three values, where None is the unknown one; and what compares and reckons."""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, DecimalException
from functools import lru_cache

from sqlglot import exp

from lakewarden.procedures.conditions.expression import Expression, Row
from lakewarden.procedures.conditions.values import aligned, compared, number, text, truth

Value = Callable[[Row], object]

_TESTS: Mapping[type[exp.Expr], Callable[[int], bool]] = {
    exp.EQ: lambda order: order == 0,
    exp.NEQ: lambda order: order != 0,
    exp.LT: lambda order: order < 0,
    exp.LTE: lambda order: order <= 0,
    exp.GT: lambda order: order > 0,
    exp.GTE: lambda order: order >= 0,
}


def conjunction(parts: Sequence[Expression]) -> Value:
    """False if a part is false, else unknown if one is, else true."""
    return _decided_by(parts, decisive=False)


def disjunction(parts: Sequence[Expression]) -> Value:
    """True if a part is true, else unknown if one is, else false."""
    return _decided_by(parts, decisive=True)


def _decided_by(parts: Sequence[Expression], *, decisive: bool) -> Value:
    def decide(row: Row) -> object:
        is_known = True
        for part in parts:
            found = truth(part.value(row))
            if found is decisive:
                return decisive
            is_known &= found is not None
        return not decisive if is_known else None

    return decide


def negation(part: Expression) -> Value:
    def negate(row: Row) -> object:
        found = truth(part.value(row))
        return None if found is None else not found

    return negate


def comparison(kind: type[exp.Expr], left: Expression, right: Expression) -> Value:
    test = _TESTS[kind]

    def compare(row: Row) -> object:
        order = compared(left.value(row), right.value(row))
        return None if order is None else test(order)

    return compare


def null_safe_equality(left: Expression, right: Expression, *, negate: bool) -> Value:
    def equal(row: Row) -> object:
        one, other = left.value(row), right.value(row)
        if one is None or other is None:
            return (one is other) is not negate
        return (compared(one, other) == 0) is not negate

    return equal


def membership(wanted: Expression, choices: Sequence[Expression]) -> Value:
    """True if one choice is equal, else unknown if a choice is null, else false."""

    def contains(row: Row) -> object:
        value = wanted.value(row)
        orders = [compared(value, selection.value(row)) for selection in choices]
        if 0 in orders:
            return True
        return None if None in orders else False

    return contains


def arithmetic(kind: type[exp.Expr], left: Expression, right: Expression) -> Value:
    work = _ARITHMETIC[kind]

    def reckon(row: Row) -> object:
        one, other = number(left.value(row)), number(right.value(row))
        if one is None or other is None:
            return None
        try:
            return work(*aligned(one, other))
        except (ArithmeticError, DecimalException):
            # A division by zero, and what is too large to be a number, are null.
            return None

    return reckon


def _divided(one: int | float | Decimal, other: int | float | Decimal) -> object:
    return one / other  # type: ignore[operator]


def _whole_quotient(one: int | float | Decimal, other: int | float | Decimal) -> object:
    # Java cuts off towards zero, where Python would round down.
    if isinstance(one, int) and isinstance(other, int):
        quotient = abs(one) // abs(other)
        return quotient if (one < 0) == (other < 0) else -quotient
    return int(one / other)  # type: ignore[operator]


def _remainder(one: int | float | Decimal, other: int | float | Decimal) -> object:
    quotient = _whole_quotient(one, other)
    return one - other * quotient  # type: ignore[operator]


_ARITHMETIC: Mapping[type[exp.Expr], Callable[..., object]] = {
    exp.Add: lambda one, other: one + other,
    exp.Sub: lambda one, other: one - other,
    exp.Mul: lambda one, other: one * other,
    exp.Div: _divided,
    exp.IntDiv: _whole_quotient,
    exp.Mod: _remainder,
}


def likeness(value: Expression, pattern: Expression, escape: str, *, any_case: bool) -> Value:
    """SQL's LIKE: `%` is any text, `_` any character."""

    def match(row: Row) -> object:
        whole, like = text(value.value(row)), text(pattern.value(row))
        if whole is None or like is None:
            return None
        return _like(like, escape, any_case=any_case).fullmatch(whole) is not None

    return match


@lru_cache(maxsize=256)
def _like(pattern: str, escape: str, *, any_case: bool) -> re.Pattern[str]:
    parts, characters = [], iter(pattern)
    for character in characters:
        if character == escape:
            parts.append(re.escape(next(characters, escape)))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return re.compile("".join(parts), re.DOTALL | (re.IGNORECASE if any_case else 0))


def selection(branches: Sequence[tuple[Expression, Expression]], default: Expression) -> Value:
    """The value of the first branch whose condition is true."""

    def choose(row: Row) -> object:
        for condition, result in branches:
            if truth(condition.value(row)) is True:
                return result.value(row)
        return default.value(row)

    return choose
