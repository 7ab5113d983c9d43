"""Arrow filters: a SQL condition over a table's columns as an Arrow expression.

Unknown stays unknown, as in SQL: a row is kept where the condition is true. A constant takes the
type of the column that it is compared with, so that statistics and partition paths can exclude
files; a constant that has no value of that type is refused.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from sqlglot import exp

from lakewarden.engine.read.conditions.parsing import (
    DEPTH_MAX,
    NAMES,
    arrow_type,
    bad_filter,
    constant,
    evaluated,
    function_call,
    parsed_condition,
    too_deep,
    unknown,
    unknown_column,
    word,
)

Alternatives: TypeAlias = tuple[tuple[tuple[str, str, object], ...], ...]

_COMPARISONS: Mapping[type[exp.Expr], tuple[str, Callable[..., pc.Expression]]] = {
    exp.EQ: ("=", eq),
    exp.NEQ: ("!=", ne),
    exp.LT: ("<", lt),
    exp.LTE: ("<=", le),
    exp.GT: (">", gt),
    exp.GTE: (">=", ge),
}
_MIRRORED: Mapping[str, str] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ARITHMETIC: Mapping[type[exp.Expr], Callable[..., pc.Expression]] = {
    exp.Add: pc.add,
    exp.Sub: pc.subtract,
    exp.Mul: pc.multiply,
}
_types = pa.types
_SAFE_CASTS: Sequence[tuple[Callable[..., bool], Callable[..., bool]]] = (
    (_types.is_integer, _types.is_string),
    (_types.is_boolean, _types.is_string),
    (_types.is_string, _types.is_string),
    (_types.is_integer, _types.is_int64),
    (_types.is_integer, _types.is_floating),
    (_types.is_floating, _types.is_float64),
    (_types.is_decimal, _types.is_float64),
    (_types.is_timestamp, _types.is_date32),
    (_types.is_date, _types.is_timestamp),
)
_FUNCTIONS: Mapping[str, tuple[int, Callable[..., pc.Expression]]] = {
    "abs": (1, pc.abs),
    "ceil": (1, pc.ceil),
    "day": (1, pc.day),
    "dayofmonth": (1, pc.day),
    "floor": (1, pc.floor),
    "hour": (1, pc.hour),
    "isnotnull": (1, pc.is_valid),
    "isnull": (1, pc.is_null),
    "length": (1, pc.utf8_length),
    "ltrim": (1, lambda text: pc.utf8_ltrim(text, " ")),
    "minute": (1, pc.minute),
    "month": (1, pc.month),
    "round": (1, lambda number: pc.round(number, round_mode="half_towards_infinity")),
    "rtrim": (1, lambda text: pc.utf8_rtrim(text, " ")),
    "second": (1, pc.second),
    "trim": (1, lambda text: pc.utf8_trim(text, " ")),
    "year": (1, pc.year),
}


def arrow_filter(text: str, schema: pa.Schema) -> tuple[pc.Expression, Alternatives | None]:
    """A condition as an expression; and as alternatives of plain conditions, where it is that."""
    tree = parsed_condition(text)
    compiler = _Compiler(schema)
    try:
        return compiler.truth(tree), compiler.alternatives(tree)
    except RecursionError:
        raise too_deep() from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise bad_filter(
            f"The filter {text!r:.200} does not fit the table.", f"{reason}.", "Use a cast."
        ) from None


class _Compiler:
    """Makes expressions of the trees of one condition."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def truth(self, node: exp.Expr, depth: int = 0) -> pc.Expression:
        """What is true, false or unknown of a row."""
        if depth > DEPTH_MAX:
            raise too_deep()
        match node:
            case exp.Paren():
                return self.truth(node.this, depth + 1)
            case exp.And() | exp.Or():
                # A long chain is a deep tree, so that its parts are taken side by side.
                parts = [self.truth(part, depth + 1) for part in node.flatten()]
                return reduce(and_ if isinstance(node, exp.And) else or_, parts)
            case exp.Not():
                return ~self.truth(node.this, depth + 1)
            case exp.In() if node.expressions:
                return self._membership(node)
            case exp.Between() if not node.args.get("symmetric"):
                low = self._compared(exp.GTE, node.this, node.args["low"])
                return low & self._compared(exp.LTE, node.this, node.args["high"])
            case exp.Is():
                return self._is(node)
            case exp.NullSafeEQ() | exp.NullSafeNEQ():
                same = self._same(node.this, node.expression)
                return same if isinstance(node, exp.NullSafeEQ) else ~same
            case exp.Like() | exp.ILike() | exp.Escape() | exp.RegexpLike():
                return self._likeness(node)
            case exp.Null():
                return pc.scalar(pa.scalar(None, pa.bool_()))
            case _ if type(node) in _COMPARISONS:
                return self._compared(type(node), node.this, node.expression)
        if isinstance(node, exp.Predicate | exp.Connector):
            raise unknown(node)
        return self._boolean(node)

    def alternatives(self, node: exp.Expr) -> Alternatives | None:
        """The condition as alternatives of conditions on single columns, where it is no more."""
        groups = []
        for group in _parts(node, exp.Or):
            plain = [self._plain(part) for part in _parts(group, exp.And)]
            known = [one for one in plain if one is not None]
            if len(known) < len(plain):
                return None
            groups.append(tuple(condition for one in known for condition in one))
        return tuple(groups)

    def _plain(self, node: exp.Expr) -> tuple[tuple[str, str, object], ...] | None:
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            low = self._pair(">=", node.this, node.args["low"])
            high = self._pair("<=", node.this, node.args["high"])
            return low + high if low and high else None
        if isinstance(node, exp.In) and node.expressions:
            pairs = [self._pair("=", node.this, one) for one in node.expressions]
            known = [pair[0] for pair in pairs if pair]
            if len(known) < len(pairs):
                return None
            return ((known[0][0], "in", [value for _, _, value in known]),)
        if type(node) not in _COMPARISONS:
            return None
        operator = _COMPARISONS[type(node)][0]
        return self._pair(operator, node.this, node.expression) or self._pair(
            _MIRRORED.get(operator, operator), node.expression, node.this
        )

    def _pair(
        self, operator: str, column: exp.Expr, other: exp.Expr
    ) -> tuple[tuple[str, str, object], ...] | None:
        """A comparison of a whole column with a constant, as a condition."""
        if not isinstance(column, exp.Column) or column.args.get("table"):
            return None
        path, type_ = self._path(column)
        value = constant(other, type_)
        if value is None or not value.is_valid or value.type != type_:
            return None
        return ((path[0], operator, value.as_py()),)

    def _compared(self, kind: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> pc.Expression:
        one, other = self._both(left, right)
        return _COMPARISONS[kind][1](one, other)

    def _both(self, left: exp.Expr, right: exp.Expr) -> tuple[pc.Expression, pc.Expression]:
        """Two values, of which a constant has the type of the other one."""
        one, other = constant(left), constant(right)
        if one is None:
            found = self._value(left)
            return found, self._like(right, found)
        if other is None:
            found = self._value(right)
            return self._like(left, found), found
        return pc.scalar(one), pc.scalar(other)

    def _like(self, node: exp.Expr, other: pc.Expression) -> pc.Expression:
        value = constant(node, self._type_of(other))
        return self._value(node) if value is None else pc.scalar(value)

    def _membership(self, node: exp.Expr) -> pc.Expression:
        found = self._value(node.this)
        type_ = self._type_of(found)
        values = [constant(one, type_) for one in node.expressions]
        given = [value for value in values if value is not None]
        if len(given) < len(values):
            return reduce(or_, (self._compared(exp.EQ, node.this, one) for one in node.expressions))
        known = pa.array([value.as_py() for value in given if value.is_valid], type=type_)
        nothing = pc.scalar(pa.scalar(None, pa.bool_()))
        # For Arrow a null is in no list, for SQL that is unknown, also where the list has one.
        is_unknown = pc.scalar(True) if len(known) < len(values) else found.is_null()
        return found.isin(known) | (is_unknown & nothing)

    def _is(self, node: exp.Expr) -> pc.Expression:
        if isinstance(node.expression, exp.Null):
            return self._value(node.this).is_null()
        if not isinstance(node.expression, exp.Boolean):
            raise unknown(node.expression)
        condition = self.truth(node.this)
        wanted = condition if node.expression.this else ~condition
        return pc.coalesce(wanted, pc.scalar(False))

    def _same(self, left: exp.Expr, right: exp.Expr) -> pc.Expression:
        one, other = self._both(left, right)
        equal = pc.coalesce(one == other, pc.scalar(False))
        return equal | (one.is_null() & other.is_null())

    def _likeness(self, node: exp.Expr) -> pc.Expression:
        escape = "\\"
        if isinstance(node, exp.Escape):
            escape, node = node.expression.name, node.this
        pattern = node.expression
        is_text = isinstance(pattern, exp.Literal) and pattern.is_string
        if (
            not is_text
            or len(escape) != 1
            or not isinstance(node, exp.Like | exp.ILike | exp.RegexpLike)
        ):
            raise unknown(pattern)
        value = self._value(node.this)
        if isinstance(node, exp.RegexpLike):
            # Arrow looks at a pattern only where there is a row.
            pc.match_substring_regex(pa.array([""]), pattern.name)
            found = pc.match_substring_regex(value, pattern.name)
        else:
            any_case = isinstance(node, exp.ILike)
            found = pc.match_like(value, _escaped(pattern.name, escape), ignore_case=any_case)
        return ~found if node.args.get("negate") else found

    def _boolean(self, node: exp.Expr) -> pc.Expression:
        found = self._value(node)
        if not _types.is_boolean(self._type_of(found)):
            raise bad_filter(
                f"{word(node)} is of type {self._type_of(found)}, not true or false.",
                "A filter says of each row whether it is wanted.",
                "Compare it with a value.",
            )
        return found

    def _value(self, node: exp.Expr) -> pc.Expression:
        """What a node is for a row."""
        fixed = constant(node)
        if fixed is not None:
            return pc.scalar(fixed)
        match node:
            case exp.Column():
                return pc.field(*self._path(node)[0])
            case exp.Paren():
                return self._value(node.this)
            case exp.Neg():
                return pc.negate(self._value(node.this))
            case exp.Cast() | exp.TryCast():
                return self._cast(node)
            case exp.Div():
                one, other = map(self._value, (node.this, node.expression))
                # What is divided by nothing is unknown.
                known = pc.if_else(other == 0, pc.scalar(None), other.cast(pa.float64()))
                return pc.divide(one.cast(pa.float64()), known)
            case exp.Case():
                return self._case(node)
            case exp.Anonymous():
                return self._function(node)
            case _ if type(node) in _ARITHMETIC:
                return _ARITHMETIC[type(node)](*map(self._value, (node.this, node.expression)))
            case _ if self._is_truth(node):
                return self.truth(node)
        raise unknown(node)

    def _cast(self, node: exp.Expr) -> pc.Expression:
        """A value in another type, where no row's value can fail to be one."""
        found, target = self._value(node.this), arrow_type(node.args["to"])
        source = self._type_of(found)
        if not any(is_from(source) and is_to(target) for is_from, is_to in _SAFE_CASTS):
            raise bad_filter(
                f"A filter cannot cast a {source} to {target}.",
                "Some row may have a value that the type lacks.",
                "Write the constant in the column's type instead.",
            )
        return found.cast(target)

    def _is_truth(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Predicate | exp.Connector | exp.Not | exp.RegexpLike)

    def _case(self, node: exp.Expr) -> pc.Expression:
        default = node.args.get("default")
        found = pc.scalar(None) if default is None else self._value(default)
        for branch in reversed(node.args["ifs"]):
            condition = (
                self.truth(branch.this)
                if node.this is None
                else self._compared(exp.EQ, node.this, branch.this)
            )
            is_met = pc.coalesce(condition, pc.scalar(False))
            found = pc.if_else(is_met, self._value(branch.args["true"]), found)
        return found

    def _function(self, node: exp.Expr) -> pc.Expression:
        name = str(node.this).lower()
        call = function_call(node)
        if call is not None:
            value = self._value(call.argument)
            return evaluated(call, value, self._type_of(value), node)
        if name in NAMES:
            raise bad_filter(
                f"{word(node)} has {len(node.expressions)} arguments that do not fit.",
                "In the filter of a table it takes a value, and constants for all that follows.",
                "Correct them.",
            )
        if name == "coalesce" and node.expressions:
            first, *rest = node.expressions
            found = self._value(first)
            return pc.coalesce(found, *(self._like(one, found) for one in rest))
        if name not in _FUNCTIONS:
            raise unknown(node)
        count, function = _FUNCTIONS[name]
        if len(node.expressions) != count:
            raise bad_filter(
                f"{word(node)} has {len(node.expressions)} arguments.",
                f"In the filter of a table it takes {count}.",
                "Correct them.",
            )
        return function(*map(self._value, node.expressions))

    def _path(self, node: exp.Column) -> tuple[tuple[str, ...], pa.DataType]:
        """Where a column is, by its name in any case, and its type; a dot enters a struct."""
        fields: Iterable[pa.Field] = self._schema
        path: list[str] = []
        type_ = pa.null()
        for part in node.parts:
            found = _named(part.name, fields)
            if found is None:
                raise unknown_column(node, [field.name for field in fields], "The table")
            path.append(found.name)
            type_ = found.type
            fields = list(type_) if _types.is_struct(type_) else []
        return tuple(path), type_

    def _type_of(self, expression: pc.Expression) -> pa.DataType:
        scanner = ds.Scanner.from_batches([], schema=self._schema, columns={"it": expression})
        return scanner.projected_schema.field("it").type


def _parts(node: exp.Expr, kind: type[exp.Expr]) -> Sequence[exp.Expr]:
    inner = node.unnest()
    return [part.unnest() for part in inner.flatten()] if isinstance(inner, kind) else [inner]


def _named(name: str, fields: Iterable[pa.Field]) -> pa.Field | None:
    same = [field for field in fields if field.name.lower() == name.lower()]
    exact = [field for field in same if field.name == name]
    return next(iter(exact or same), None)


def _escaped(pattern: str, escape: str) -> str:
    """A LIKE pattern with the backslash as its escape, as Arrow has it."""
    if escape == "\\":
        return pattern
    parts, characters = [], iter(pattern)
    for character in characters:
        is_special = character == "\\"
        parts.append("\\" + next(characters, escape) if character == escape else character)
        if is_special:
            parts.append("\\")
    return "".join(parts)
