"""Conditions as people type them: SQL, or a column, an operator and a value without quotes."""

import re
from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.merge.predicate import bind_filter

_CONDITION = re.compile(
    r"\s*(?:`(?P<quoted>[^`]+)`|(?P<column>.+?))\s*(?P<operator><=|>=|!=|<>|==|=|<|>)"
    r"\s*(?P<value>.*?)\s*",
    re.DOTALL,
)
# A text with these is more than one condition.
_JOINED = re.compile(r"\s(and|or)\s", re.IGNORECASE)


def where(texts: Sequence[str], schema: pa.Schema) -> str | None:
    """The filter that all of some conditions make; `InvalidRequest` for what is none.

    >>> where(["qty >= 3", "city = Oslo"], pa.schema([("qty", pa.int64()), ("city", pa.string())]))
    "(qty >= 3) AND (`city` = 'Oslo')"
    """
    if not texts:
        return None
    return " AND ".join(f"({_condition(text, schema)})" for text in texts)


def _condition(text: str, schema: pa.Schema) -> str:
    try:
        bind_filter(text, schema)
    except InvalidRequest:
        quoted = _with_quotes(text, schema)
        if quoted is None:
            raise
        bind_filter(quoted, schema)
        return quoted
    return text


def _with_quotes(text: str, schema: pa.Schema) -> str | None:
    """A condition whose column and value have the quotes that a shell makes hard to type."""
    match = _CONDITION.fullmatch(text)
    column = match and (match["quoted"] or match["column"])
    if match is None or column not in schema.names:
        return None
    value = match["value"]
    if _JOINED.search(value):
        return None
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    literal = exp.Literal.string(value[1:-1] if is_quoted else value).sql(dialect="spark")
    operator = "=" if match["operator"] == "==" else match["operator"]
    return f"`{column}` {operator} {literal}"
