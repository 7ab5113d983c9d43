"""Conditions for Spark: a scan's filters as SQL text, where they can be said in it."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal

from lakewarden.engine.read.predicate import Condition
from lakewarden.engine.read.slice_reader import ReadSpec
from lakewarden.engine.table.schema import COMMIT_TIME

_OPERATORS = {"=": "=", "==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_LISTS = {"in": "IN", "not in": "NOT IN"}


def sql_condition(spec: ReadSpec) -> str | None:
    """What rows must fulfil, as SQL; empty when nothing, None when it can't be said in SQL."""
    parts = []
    if spec.commit_times is not None:
        parts.append(_condition((COMMIT_TIME, "in", sorted(spec.commit_times) or [""])))
    if spec.predicate is not None:
        if spec.predicate.conditions is None:
            return None
        parts.append(_any_of(spec.predicate.conditions))
    if None in parts:
        return None
    return " AND ".join(f"({part})" for part in parts)


def _any_of(groups: Sequence[Sequence[Condition]]) -> str | None:
    spelled = [[_condition(condition) for condition in group] for group in groups]
    if any(text is None for group in spelled for text in group):
        return None
    return " OR ".join(f"({' AND '.join(filter(None, group))})" for group in spelled)


def _condition(condition: Condition) -> str | None:
    name, operator, value = condition
    quoted = f"`{name.replace('`', '``')}`"
    if operator in _LISTS and isinstance(value, (list, tuple, set, frozenset)):
        texts = [_literal(item) for item in value]
        if not texts or None in texts:
            return None
        return f"{quoted} {_LISTS[operator]} ({', '.join(filter(None, texts))})"
    text = _literal(value)
    if operator not in _OPERATORS or text is None:
        return None
    return f"{quoted} {_OPERATORS[operator]} {text}"


def _literal(value: object) -> str | None:
    """A value as a SQL literal; None for values that have none both engines agree on."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, (int, Decimal)):
        return f"{value}" if isinstance(value, int) else f"{value:f}BD"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'" if value.tzinfo else None
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return None
