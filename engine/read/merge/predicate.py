"""Predicates: what a caller filters by, bound to the table's columns.

SQL text and conditions become Arrow expressions, which are the language from here on. Which columns
one needs is found by asking Arrow to bind it without them, since expressions don't tell.
"""

import re
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from difflib import get_close_matches
from functools import reduce
from operator import and_, or_
from typing import TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.conditions.arrow_filter import arrow_filter

Condition: TypeAlias = tuple[str, str, object]
_Given: TypeAlias = pc.Expression | Sequence[Condition] | Sequence[Sequence[Condition]]
Filter: TypeAlias = str | _Given

# No column of a table can be called so.
_POSITION = "\0position"

# What Arrow says of a column that is not there, and of types that don't go together.
_NO_FIELD = re.compile(r"No match for FieldRef\.Name\((?P<name>.*?)\) in ")
_NO_KERNEL = re.compile(
    r"Function '(?P<function>\w+)' has no kernel matching input types (?P<types>\(.*\))"
)


@dataclass(frozen=True, slots=True)
class Predicate:
    """A filter expression and the columns it reads, in table order."""

    expression: pc.Expression
    columns: tuple[str, ...]
    # Alternatives of conditions, where the filter was given so; other engines than Arrow need it.
    conditions: tuple[tuple[Condition, ...], ...] | None = None

    def apply(self, rows: pa.Table) -> pa.Table:
        return rows.filter(self.expression)

    def positions(self, rows: pa.Table) -> np.ndarray:
        """The positions of the rows that fulfil it, ascending."""
        numbered = rows.append_column(_POSITION, pa.array(np.arange(len(rows))))
        return np.asarray(numbered.filter(self.expression).column(_POSITION))


def bind_filter(filter_: Filter | None, schema: pa.Schema) -> Predicate | None:
    """A caller's filter as a predicate over a schema: SQL text, an Arrow expression, or (column,
    operator, value) triples, all of which must hold; a list of such lists means any of them."""
    if isinstance(filter_, str):
        expression, conditions = arrow_filter(filter_, schema)
        # Plain conditions are one thing, however they were written.
        expression = expression if conditions is None else _as_expression(conditions)
    elif filter_ is None or (isinstance(filter_, Sequence) and not filter_):
        return None
    else:
        expression, conditions = _as_expression(filter_), _alternatives(filter_)
    problem = _binding_problem(expression, schema)
    if problem is not None:
        raise _bad_filter(expression, schema, problem)
    columns = tuple(_needed(expression, schema, schema.names))
    return Predicate(expression, columns, conditions)


def _alternatives(filter_: _Given) -> tuple[tuple[Condition, ...], ...] | None:
    if isinstance(filter_, pc.Expression):
        return None
    groups = [filter_] if isinstance(filter_[0][0], str) else filter_
    return tuple(
        tuple((name, operator, value) for name, operator, value in group)
        for group in cast(Sequence[Sequence[Condition]], groups)
    )


def _as_expression(filter_: _Given) -> pc.Expression:
    if isinstance(filter_, pc.Expression):
        return filter_
    try:
        groups = [filter_] if isinstance(filter_[0][0], str) else filter_
        alternatives = [
            reduce(and_, [_of_condition(one) for one in group])
            for group in cast(Sequence[Sequence[Condition]], groups)
        ]
        return reduce(or_, alternatives)
    except (ValueError, TypeError, OverflowError) as error:
        raise _no_filter(filter_, str(error).rstrip(".")) from None


def _of_condition(condition: Condition) -> pc.Expression:
    """One condition; Arrow has no words for those about nulls and beginnings."""
    name, operator, value = condition
    match operator:
        case "is null":
            return pc.field(name).is_null()
        case "is not null":
            return pc.field(name).is_valid()
        case "starts with":
            return pc.starts_with(pc.field(name), str(value))
        case "in" | "not in" if isinstance(value, Sized) and not len(value):
            # An empty list has no type that Arrow could compare.
            return pc.scalar(operator == "not in")
    return pq.filters_to_expression([condition])


def _no_filter(filter_: object, problem: str) -> InvalidRequest:
    return InvalidRequest(
        "bad_filter",
        what=f"The filter {filter_!r} is not understood: {problem}.",
        why="A filter is SQL text, an Arrow expression or a list of (column, operator, value).",
        now="For example: \"city = 'Oslo' and qty > 3\".",
    )


def _binding_problem(expression: pc.Expression, schema: pa.Schema) -> str | None:
    try:
        schema.empty_table().filter(expression)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, TypeError) as error:
        return _in_our_words(str(error).partition("\n")[0].rstrip("."))
    return None


def _in_our_words(problem: str) -> str:
    if match := _NO_FIELD.match(problem):
        return f"the table has no column {match['name']!r}"
    if match := _NO_KERNEL.match(problem):
        return f"{match['function']!r} does not take {match['types']}"
    return problem


def _needed(expression: pc.Expression, schema: pa.Schema, candidates: Sequence[str]) -> list[str]:
    """The candidates without which the expression cannot be bound, found by halving."""
    if _binds_without(expression, schema, frozenset(candidates)):
        return []
    if len(candidates) == 1:
        return list(candidates)
    middle = len(candidates) // 2
    return _needed(expression, schema, candidates[:middle]) + _needed(
        expression, schema, candidates[middle:]
    )


def _binds_without(expression: pc.Expression, schema: pa.Schema, names: frozenset[str]) -> bool:
    rest = pa.schema([field for field in schema if field.name not in names])
    try:
        ds.Scanner.from_batches([], schema=rest, filter=expression)
    except pa.ArrowInvalid:
        return False
    return True


def _bad_filter(expression: pc.Expression, schema: pa.Schema, problem: str) -> InvalidRequest:
    return InvalidRequest(
        "bad_filter",
        what=f"The filter {str(expression)!r} does not fit the table: {problem}.",
        why=f"The table has the columns {', '.join(schema.names)}.",
        now="Correct the column's name, or cast the value to the column's type.",
    )


def check_columns(columns: Sequence[str] | None, schema: pa.Schema) -> tuple[str, ...]:
    """The columns to return; all of the schema's without a request; unknown names are refused."""
    if columns is None:
        return tuple(schema.names)
    if isinstance(columns, str):
        raise InvalidRequest(
            "bad_columns",
            what=f"The columns {columns!r} are one text.",
            why="Columns are a list of names.",
            now=f"Give {[name.strip() for name in columns.split(',')]}.",
        )
    for name in columns:
        if name not in schema.names:
            nearest = get_close_matches(name, schema.names, n=1)
            raise InvalidRequest(
                "unknown_column",
                what=f"The table has no column {name!r}.",
                why=f"It has {', '.join(schema.names)}.",
                now=f"Did you mean {nearest[0]!r}?" if nearest else "Choose one of these.",
                column=name,
            )
    return tuple(columns)
