"""Conditions in words, such as 'qty > 3', with their value in the type of the column."""

import re

import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.merge.predicate import Condition

_CONDITION = re.compile(
    r"\s*(?:`(?P<quoted>[^`]+)`|(?P<column>.+?))\s*(?P<operator><=|>=|!=|<>|==|=|<|>)"
    r"\s*(?P<value>.*?)\s*",
    re.DOTALL,
)


def condition(text: str, schema: pa.Schema) -> Condition:
    """The condition a text stands for; `InvalidRequest` when it is none on these columns.

    >>> condition("qty >= 3", pa.schema([("qty", pa.int64())]))
    ('qty', '>=', 3)
    """
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise _bad_filter(
            f"{text!r} is not a condition.",
            "It must be COLUMN OP VALUE with one of = != < <= > >=.",
            "For example: --where 'qty > 3'",
        )
    column = match["quoted"] or match["column"]
    if column not in schema.names:
        raise _bad_filter(
            f"The table has no column {column!r}.",
            f"It has {', '.join(schema.names)}.",
            "Correct the name. Put a name with operators in backticks.",
        )
    operator = "!=" if match["operator"] == "<>" else match["operator"]
    return column, operator, _typed(_unquoted(match["value"]), schema.field(column))


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted else text


def _typed(text: str, field: pa.Field) -> object:
    try:
        return _scalar(text, field.type).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _bad_filter(
            f"{text!r} is not a value of column {field.name!r}.",
            f"The column has type {field.type}.",
            "Correct the value.",
        ) from None


def _scalar(text: str, type_: pa.DataType) -> pa.Scalar:
    if pa.types.is_timestamp(type_) and type_.tz and not re.search(r"\d:.*(Z|[+-][\d:]+)$", text):
        # A time without zone means UTC.
        return pa.scalar(text).cast(pa.timestamp(type_.unit)).cast(type_)
    return pa.scalar(text).cast(type_)


def _bad_filter(what: str, why: str, now: str) -> InvalidRequest:
    return InvalidRequest("bad_filter", what=what, why=why, now=now)
