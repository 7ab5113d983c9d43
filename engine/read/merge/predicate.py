"""Predicates: what a caller filters by, bound to the table's columns.

SQL text and conditions become Arrow expressions, which are the language from here on. Which columns
one needs is found by asking Arrow to bind it without them, since expressions don't tell.

Equalities: to which values of which columns a filter holds the rows that it keeps.

Arrow's expressions do not show what they are made of, but the form in which they travel does: a
list of calls, column names and literals. Whatever is not understood counts as "any row".

Possibility: whether a predicate can hold for rows of which only some things are known.

What is known is an Arrow expression, a guarantee, and Arrow decides. Bounds say nothing of NaN,
which some writers leave out of them; so a row with NaN is a possibility of its own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from difflib import get_close_matches
from functools import reduce
from itertools import combinations
from operator import and_, or_
from typing import TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyarrow import types

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


# What is known of each column, as expressions that hold for all rows.
Known = Mapping[str, Sequence[pc.Expression]]

# Each column of fractions that a predicate reads doubles the questions.
_NAN_COLUMNS_MAX = 4
_FORMAT = ds.ParquetFileFormat()
_NOWHERE = pafs.LocalFileSystem()
_NAN = pc.scalar(float("nan"))


def possible(known: Sequence[Known], predicate: Predicate, schema: pa.Schema) -> frozenset[int]:
    """The numbers of those items in which some row may fulfil the predicate."""
    kept: frozenset[int] = frozenset()
    fractions = _fractions(predicate, schema)
    if len(fractions) > _NAN_COLUMNS_MAX:
        known = [_without(one, fractions) for one in known]
        fractions = ()
    for unordered in _subsets(fractions):
        rest = [number for number in range(len(known)) if number not in kept]
        guarantees = [_guarantee(known[number], unordered) for number in rest]
        kept |= {rest[place] for place in _kept(guarantees, predicate, schema)}
    return kept


def may_hold_for_nan(predicate: Predicate, schema: pa.Schema) -> bool:
    """Whether a row with NaN in a column that the predicate reads may fulfil it."""
    fractions = _fractions(predicate, schema)
    if len(fractions) > _NAN_COLUMNS_MAX or _hides_fractions(predicate, schema):
        return True
    if not fractions:
        return False
    nan = [_guarantee({}, subset) for subset in _subsets(fractions) if subset]
    return bool(_kept(nan, predicate, schema))


def _fractions(predicate: Predicate, schema: pa.Schema) -> tuple[str, ...]:
    return tuple(name for name in predicate.columns if types.is_floating(schema.field(name).type))


def _hides_fractions(predicate: Predicate, schema: pa.Schema) -> bool:
    """Whether some column has numbers inside it, of which nothing can be assumed."""
    return any(_has_fractions_inside(schema.field(name).type) for name in predicate.columns)


def _has_fractions_inside(type_: pa.DataType) -> bool:
    inner = [type_.field(number).type for number in range(type_.num_fields)]
    return any(types.is_floating(one) or _has_fractions_inside(one) for one in inner)


def _without(known: Known, names: Iterable[str]) -> Known:
    return {name: said for name, said in known.items() if name not in names}


def _subsets(names: Sequence[str]) -> Iterator[frozenset[str]]:
    for count in range(len(names) + 1):
        yield from map(frozenset, combinations(names, count))


def _guarantee(known: Known, unordered: frozenset[str]) -> pc.Expression | None:
    """What holds for a row that has NaN in just these columns."""
    said = [one for expressions in _without(known, unordered).values() for one in expressions]
    said += [pc.field(name) == _NAN for name in sorted(unordered)]
    return reduce(and_, said) if said else None


def _kept(
    guarantees: Sequence[pc.Expression | None], predicate: Predicate, schema: pa.Schema
) -> frozenset[int]:
    fragments = [
        _FORMAT.make_fragment(
            str(number),
            filesystem=_NOWHERE,
            partition_expression=pc.scalar(True) if guarantee is None else guarantee,
        )
        for number, guarantee in enumerate(guarantees)
    ]
    dataset = ds.FileSystemDataset(fragments, schema, _FORMAT)
    try:
        matching = list(dataset.get_fragments(predicate.expression))
    except pa.ArrowInvalid:
        # Arrow has computed something of a value that no row need have: a cast of NaN, say.
        return frozenset(range(len(guarantees)))
    return frozenset(int(fragment.path) for fragment in matching)
