"""Conditions for Spark: a query's filter as SQL text that keeps the very rows Arrow keeps."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as kinds

from lakewarden.engine.read.merge.predicate import Condition
from lakewarden.engine.read.merge.spec import ReadSpec
from lakewarden.engine.spark.scan.literals import literal
from lakewarden.engine.spark.workers.types import quoted
from lakewarden.engine.table.schema import COMMIT_TIME

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
