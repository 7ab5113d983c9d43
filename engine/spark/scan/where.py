"""Conditions for Spark: a query's filter as SQL text that keeps the very rows Arrow keeps."""

import math
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.types as kinds

from lakewarden.engine.read.merge.predicate import Condition
from lakewarden.engine.read.merge.spec import ReadSpec
from lakewarden.engine.spark.workers.types import quoted
from lakewarden.engine.table.schema import COMMIT_TIME

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


EVERYTHING = "TRUE"
_OPERATORS = {"=": "=", "==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_ABOUT_NULLS = {"is null": "IS NULL", "is not null": "IS NOT NULL"}
# Types whose values are in a list or not without doubt; floating-point zeros, say, are two.
_LISTABLE = (kinds.is_string, kinds.is_integer, kinds.is_date32)


def sql_condition(spec: ReadSpec) -> str | None:
    """What the rows of a query fulfil; None when SQL has no exact words for it."""
    parts: list[str | None] = []
    if spec.commit_times is not None:
        commits = (COMMIT_TIME, "in", sorted(spec.commit_times))
        parts.append(condition_sql(commits, spec.schema))
    if spec.predicate is not None:
        parts.append(_alternatives(spec.predicate.conditions, spec.schema))
    return _joined(" AND ", parts) if parts else EVERYTHING


def condition_sql(condition: Condition, schema: pa.Schema) -> str | None:
    """One condition on a column of a schema as SQL, or None."""
    name, operator, value = condition
    type_ = schema.field(name).type
    if operator in _ABOUT_NULLS:
        return f"{quoted(name)} {_ABOUT_NULLS[operator]}"
    if operator == "starts with":
        beginning = literal(value, type_) if kinds.is_string(type_) else None
        return None if beginning is None else f"startswith({quoted(name)}, {beginning})"
    if operator in ("in", "not in"):
        return _membership(name, type_, value, is_in=operator == "in")
    text = literal(value, type_)
    if text is None or operator not in _OPERATORS:
        return None
    comparison = f"{quoted(name)} {_OPERATORS[operator]} {text}"
    if kinds.is_floating(type_) and operator in (">", ">="):
        # For Spark NaN is larger than any number, for Arrow it is not.
        return f"({comparison} AND NOT isnan({quoted(name)}))"
    return comparison


def _alternatives(groups: Sequence[Sequence[Condition]] | None, schema: pa.Schema) -> str | None:
    if groups is None:
        return None
    return _joined(
        " OR ",
        [_joined(" AND ", [condition_sql(one, schema) for one in group]) for group in groups],
    )


def _membership(name: str, type_: pa.DataType, values: object, *, is_in: bool) -> str | None:
    if not isinstance(values, (list, tuple, set, frozenset)):
        return None
    if not any(matches(type_) for matches in _LISTABLE):
        return None
    texts = [literal(value, type_) for value in values]
    if any(text is None for text in texts):
        return None
    if not texts:
        return "FALSE" if is_in else EVERYTHING
    listed = f"({', '.join(filter(None, texts))})"
    if is_in:
        return f"{quoted(name)} IN {listed}"
    # For Arrow a null is not in the list, for SQL that is unknown.
    return f"({quoted(name)} NOT IN {listed} OR {quoted(name)} IS NULL)"


def _joined(word: str, parts: Sequence[str | None]) -> str | None:
    known = [part for part in parts if part is not None]
    return f"({word.join(known)})" if len(known) == len(parts) else None
