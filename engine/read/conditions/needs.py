"""Needs: what a row has to fulfil for a filter to hold, as far as indexes can say anything of it.

A filter is more than its needs: whatever is no comparison of a column, or of a function of one
column, with constants is no part of them. So needs rule rows out, and never in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
from sqlglot import exp

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.conditions.parsing import constant, function_call, parsed_condition


@dataclass(frozen=True, slots=True)
class Term:
    """A function of one column, with its options as an expression index has them."""

    function: str
    column: str
    options: tuple[tuple[str, str], ...] = ()
    # In which time zone moments are seen; None where that makes no difference.
    zone: str | None = None


Need: TypeAlias = tuple[str | Term, str, object]
# Alternatives of needs; one without any can always hold.
Needs: TypeAlias = tuple[tuple[Need, ...], ...]

_OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MIRRORED: Mapping[str, str] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Functions that Arrow and Spark compute alike, and of what.
_OF_TEXT = frozenset({"trim", "ltrim", "rtrim", "length"})
_OF_TIME = {"year": "year", "month": "month", "day": "day", "dayofmonth": "day", "hour": "hour"}


def needs_of(text: str, schema: pa.Schema) -> Needs:
    """The needs of a filter in SQL text."""
    try:
        groups = [_of_group(group, schema) for group in _parts(parsed_condition(text), exp.Or)]
    except (InvalidRequest, RecursionError, pa.ArrowException):
        return ((),)
    return tuple(groups)


def _of_group(node: exp.Expr, schema: pa.Schema) -> tuple[Need, ...]:
    return tuple(need for part in _parts(node, exp.And) for need in _needs(part, schema))


def _needs(node: exp.Expr, schema: pa.Schema) -> Sequence[Need]:
    match node:
        case exp.Between() if not node.args.get("symmetric"):
            low = _compared(">=", node.this, node.args["low"], schema)
            return [*low, *_compared("<=", node.this, node.args["high"], schema)]
        case exp.In() if node.expressions:
            listed = [_compared("=", node.this, one, schema) for one in node.expressions]
            if not all(listed):
                return []
            return [(listed[0][0][0], "in", [value for ((_, _, value),) in listed])]
        case exp.Is() if isinstance(node.expression, exp.Null):
            name = _column(node.this, schema)
            return [] if name is None else [(name, "is null", None)]
        case exp.Like() if not node.args.get("negate"):
            return _like(node, schema)
    operator = _OPERATORS.get(type(node))
    if operator is None:
        return []
    mirrored = _MIRRORED.get(operator, operator)
    return _compared(operator, node.this, node.expression, schema) or _compared(
        mirrored, node.expression, node.this, schema
    )


def _compared(
    operator: str, side: exp.Expr, other: exp.Expr, schema: pa.Schema
) -> Sequence[tuple[str | Term, str, object]]:
    """A comparison of a column or a term with a constant."""
    name = _column(side, schema)
    subject = name if name is not None else _term(side, schema)
    if subject is None:
        return []
    value = constant(other, schema.field(name).type if name is not None else None)
    if value is None or not value.is_valid:
        return []
    return [(subject, operator, value.as_py())]


def _like(node: exp.Expr, schema: pa.Schema) -> Sequence[Need]:
    """A pattern that is a beginning and nothing else."""
    name, pattern = _column(node.this, schema), node.expression
    if name is None or not isinstance(pattern, exp.Literal) or not pattern.is_string:
        return []
    beginning = pattern.name.removesuffix("%")
    if beginning == pattern.name or not beginning or set(beginning) & set("%_\\"):
        return []
    return [(name, "starts with", beginning)]


def _term(node: exp.Expr, schema: pa.Schema) -> Term | None:
    """A function of a column that a filter computes as the index does; times are seen in UTC."""
    inner = node.unnest()
    call = function_call(inner)
    if call is not None:
        name = _column(call.argument, schema)
        if name is None:
            return None
        is_zoned = _is_zoned(schema.field(name).type) or call.function == "from_unixtime"
        zone = "UTC" if call.sees_moments and is_zoned else None
        return Term(call.function, name, call.options, zone)
    if not isinstance(inner, exp.Anonymous) or len(inner.expressions) != 1:
        return None
    name = _column(inner.expressions[0], schema)
    if name is None:
        return None
    function, type_ = str(inner.this).lower(), schema.field(name).type
    if pa.types.is_string(type_):
        return Term(function, name) if function in _OF_TEXT else None
    if function not in _OF_TIME or not (pa.types.is_timestamp(type_) or pa.types.is_date32(type_)):
        return None
    return Term(_OF_TIME[function], name, zone=type_.tz if _is_zoned(type_) else None)


def _is_zoned(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) and type_.tz)


def _column(node: exp.Expr, schema: pa.Schema) -> str | None:
    inner = node.unnest()
    if not isinstance(inner, exp.Column) or len(inner.parts) != 1:
        return None
    same = [name for name in schema.names if name.lower() == inner.name.lower()]
    exact = [name for name in same if name == inner.name]
    return next(iter(exact or same), None)


def _parts(node: exp.Expr, kind: type[exp.Expr]) -> Sequence[exp.Expr]:
    inner = node.unnest()
    return [part.unnest() for part in inner.flatten()] if isinstance(inner, kind) else [inner]
