"""Constants: a value that a condition spells, in the type of what it is compared with."""

import re
from collections.abc import Mapping
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.conditions.parsing import bad_filter, cannot_use, word

_types = pa.types
_Type = exp.DataType.Type
_ARROW_TYPES: Mapping[object, pa.DataType] = {
    _Type.TINYINT: pa.int8(),
    _Type.SMALLINT: pa.int16(),
    _Type.INT: pa.int32(),
    _Type.BIGINT: pa.int64(),
    _Type.FLOAT: pa.float32(),
    _Type.DOUBLE: pa.float64(),
    _Type.BOOLEAN: pa.bool_(),
    _Type.DATE: pa.date32(),
    _Type.TIMESTAMP: pa.timestamp("us", "UTC"),
    _Type.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    _Type.TIMESTAMPLTZ: pa.timestamp("us", "UTC"),
    _Type.TIMESTAMPNTZ: pa.timestamp("us"),
    **dict.fromkeys((_Type.TEXT, _Type.VARCHAR, _Type.CHAR), pa.string()),
}


def constant(node: exp.Expr, type_: pa.DataType | None = None) -> pa.Scalar | None:
    """A constant, in a type if one is wished for; None for what depends on the row."""
    match node:
        case exp.Paren():
            return constant(node.this, type_)
        case exp.Null():
            return pa.scalar(None, type_)
        case exp.Boolean():
            return pa.scalar(bool(node.this))
        case exp.Neg(this=exp.Literal(is_string=False)):
            return _number(node, f"-{node.this.name}", type_)
        case exp.Literal() if not node.is_string:
            return _number(node, node.name, type_)
        case exp.Literal():
            return _spelled(node, node.name, type_)
        case (
            exp.Cast(this=exp.Literal(is_string=True))
            | exp.TryCast(this=exp.Literal(is_string=True))
        ):
            cast = arrow_type(node.args["to"])
            is_time = _types.is_temporal(cast) and type_ is not None
            wished = type_ if is_time and _types.is_temporal(type_) else cast
            return _spelled(node, node.this.name, wished)
    return None


def arrow_type(type_: exp.DataType) -> pa.DataType:
    """The Arrow type that a cast names."""
    if type_.this is _Type.DECIMAL:
        given = [int(one.name) for one in type_.expressions]
        return pa.decimal128(*given) if given else pa.decimal128(10, 0)
    found = _ARROW_TYPES.get(type_.this)
    if found is None:
        raise unknown(type_)
    return found


def unknown(node: exp.Expr) -> InvalidRequest:
    """A part that the filters of tables don't have."""
    return cannot_use(node, "docs/guides/python.md")


def _number(node: exp.Expr, text: str, type_: pa.DataType | None) -> pa.Scalar:
    """A number in a numeric type that has it, else as it is written."""
    if text.lstrip("-").isdecimal():
        return _spelled(node, text, type_ or pa.int64())
    if type_ is None or _types.is_integer(type_):
        return pa.scalar(float(text) if "e" in text.lower() else Decimal(text))
    return _spelled(node, text, type_)


def _spelled(node: exp.Expr, text: str, type_: pa.DataType | None) -> pa.Scalar:
    is_quoted = any(one.is_string for one in node.find_all(exp.Literal))
    is_text = type_ is None or _types.is_string(type_) or _types.is_large_string(type_)
    if not is_quoted and (is_text or _types.is_temporal(type_)):
        raise _no_value(node, type_, f"Quote it: '{text}'.")
    try:
        return pa.scalar(text) if type_ is None else _typed_value(text, type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _no_value(node, type_, "Correct the value, or cast the column.") from None


def _typed_value(text: str, type_: pa.DataType) -> pa.Scalar:
    """The value of a type that a text spells; a time without zone means UTC."""
    if _types.is_timestamp(type_) and type_.tz and not re.search(r"\d:.*(Z|[+-][\d:]+)$", text):
        return pa.scalar(text).cast(pa.timestamp(type_.unit)).cast(type_)
    return pa.scalar(text).cast(type_)


def _no_value(node: exp.Expr, type_: pa.DataType | None, now: str) -> InvalidRequest:
    return bad_filter(
        f"{word(node)} is not a value of type {type_}.",
        "A value is compared with a column in the column's type.",
        now,
    )
