"""Equalities: to which values of which columns a filter holds the rows that it keeps.

Arrow's expressions do not show what they are made of, but the form in which they travel does: a
list of calls, column names and literals. Whatever is not understood counts as "any row".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

# Columns with the values that a row has one of in each; without any it can be any row.
Alternative = Mapping[str, pa.Array]
Alternatives = tuple[Alternative, ...]

_ANYTHING: Alternatives = ({},)
# More steps or alternatives than these are not looked into: they may take time without end.
_STEPS_MAX = 512
_ALTERNATIVES_MAX = 64
_STEP = re.compile(r"(call|field_ref|literal|options|end): '(.*)'")


@dataclass(frozen=True, slots=True)
class _Column:
    name: str


@dataclass(frozen=True, slots=True)
class _Values:
    values: pa.Array


# What a part of an expression is: a column, a literal, or something that holds for rows.
_Part = _Column | _Values | Alternatives


class _NotUnderstoodError(Exception):
    """Something of an expression that says nothing of columns and their values."""


def equalities(expression: pc.Expression) -> Alternatives:
    """Every row that an expression keeps is as one of these alternatives says."""
    try:
        part = _Parser(*_travelling(expression)).part()
    except (_NotUnderstoodError, pa.ArrowException):
        return _ANYTHING
    return part if isinstance(part, tuple) else _ANYTHING


def _travelling(expression: pc.Expression) -> tuple[pa.Table, list[tuple[str, str]]]:
    """The literals of an expression, and its steps."""
    _, (content,) = expression.__reduce__()
    literals = pa.ipc.open_file(content).read_all()
    text = literals.schema.to_string(show_schema_metadata=True, truncate_metadata=False)
    lines = text.partition("-- schema metadata --\n")[2].split("\n")
    if len(lines) > _STEPS_MAX:
        raise _NotUnderstoodError
    found = [_STEP.fullmatch(line) for line in lines]
    # A name may have a line break or look like a step: then nothing of it is to be trusted.
    if not all(found) or any("'" in one[2] for one in found if one):
        raise _NotUnderstoodError
    return literals, [(one[1], one[2]) for one in found if one]


class _Parser:
    """Goes through the steps of one expression: a call, its arguments, its end."""

    def __init__(self, literals: pa.Table, steps: list[tuple[str, str]]) -> None:
        self._literals = literals
        self._steps = iter(steps)

    def part(self) -> _Part:
        return self._part(*self._next())

    def _part(self, kind: str, text: str) -> _Part:
        if kind == "field_ref":
            return _Column(text)
        if kind == "literal":
            return _Values(self._literal(text))
        if kind != "call":
            raise _NotUnderstoodError
        return self._call(text)

    def _call(self, name: str) -> Alternatives:
        parts: list[_Part] = []
        options = None
        while (step := self._next())[0] != "end":
            if step[0] == "options":
                options = self._literal(step[1])
            else:
                parts.append(self._part(*step))
        return _called(name, parts, options)

    def _next(self) -> tuple[str, str]:
        step = next(self._steps, None)
        if step is None:
            raise _NotUnderstoodError
        return step

    def _literal(self, number: str) -> pa.Array:
        return self._literals.column(int(number)).chunk(0).slice(0, 1)


def _called(name: str, parts: list[_Part], options: pa.StructArray | None) -> Alternatives:
    conditions = [part if isinstance(part, tuple) else _ANYTHING for part in parts]
    match name, parts:
        case "equal", [_Column(column), _Values(values)] | [_Values(values), _Column(column)]:
            return ({column: values},)
        case "is_in", [_Column(column)] if options is not None:
            return ({column: _listed(options)},)
        case "and_kleene" | "and", [_, _]:
            return _both(*conditions)
        case "or_kleene" | "or", [_, _]:
            return _either(*conditions)
    return _ANYTHING


def _both(left: Alternatives, right: Alternatives) -> Alternatives:
    if len(left) * len(right) > _ALTERNATIVES_MAX:
        return left
    # Of two lists for a column either holds; the shorter one leaves less to look at.
    return tuple(_joined(one, other) for one in left for other in right)


def _joined(one: Alternative, other: Alternative) -> Alternative:
    shared = {name: min(one[name], other[name], key=len) for name in one.keys() & other.keys()}
    return {**one, **other, **shared}


def _either(left: Alternatives, right: Alternatives) -> Alternatives:
    both = left + right
    return both if len(both) <= _ALTERNATIVES_MAX else _ANYTHING


def _listed(options: pa.StructArray) -> pa.Array:
    return options.field("value_set").flatten()
