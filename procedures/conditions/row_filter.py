"""The row filter: a SQL condition over the columns of an answer, checked before any work is done.

Names are found in any case. A row is given where the condition is true, not where it is unknown.

Casts: a value as another type; what can't be one is null, as in SQL's TRY_CAST.

Compiling: from the tree of a condition to a function of a row.

Only what is listed here is taken; anything else is refused, with the word that it is about.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from operator import itemgetter

from sqlglot import exp

from lakewarden.engine.read.conditions.parsing import (
    DEPTH_MAX,
    parsed_condition,
    too_deep,
    unknown_column,
    unknown_word,
)
from lakewarden.procedures.conditions import logic
from lakewarden.procedures.conditions.expression import (
    KIND_OF,
    PLAIN,
    Expression,
    Row,
    ValueKind,
    constant,
)
from lakewarden.procedures.conditions.functions import FUNCTIONS, compiled, matches
from lakewarden.procedures.conditions.refusals import not_that_kind, not_these_arguments
from lakewarden.procedures.conditions.values import day, moment, number, text, truth
from lakewarden.procedures.declaring.declaration import Column

_Type = exp.DataType.Type
_WHOLE_BITS = {_Type.TINYINT: 8, _Type.SMALLINT: 16, _Type.INT: 32, _Type.BIGINT: 64}
_MOMENTS = (_Type.TIMESTAMP, _Type.TIMESTAMPTZ, _Type.TIMESTAMPLTZ, _Type.TIMESTAMPNTZ)
_TEXTS = (_Type.TEXT, _Type.VARCHAR, _Type.CHAR)
_DECIMAL_DEFAULT = (10, 0)

Cast = Callable[[object], object]


def cast_to(type_: exp.DataType) -> tuple[ValueKind, Cast] | None:
    """What a cast to a type does, and what it gives; None for a type that conditions lack."""
    if type_.this in _WHOLE_BITS:
        return ValueKind.NUMBER, _whole(_WHOLE_BITS[type_.this])
    if type_.this is _Type.DECIMAL:
        return ValueKind.NUMBER, _decimal(type_)
    return _PLAIN.get(type_.this)


def _whole(bits: int) -> Cast:
    def cast(value: object) -> object:
        found = number(value)
        if found is None or not Decimal(found).is_finite():
            return None
        whole = int(found)
        return whole if -(1 << (bits - 1)) <= whole < 1 << (bits - 1) else None

    return cast


def _decimal(type_: exp.DataType) -> Cast:
    given = tuple(int(one.name) for one in type_.expressions)
    digits, places = (given + _DECIMAL_DEFAULT[len(given) :])[:2]

    def cast(value: object) -> object:
        found = number(value)
        if found is None:
            return None
        near = Decimal(repr(found) if isinstance(found, float) else found)
        if not near.is_finite() or near.adjusted() >= digits - places:
            return None
        return near.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)

    return cast


def _floating(value: object) -> object:
    found = number(value)
    return None if found is None else float(found)


_PLAIN: Mapping[object, tuple[ValueKind, Cast]] = {
    _Type.DOUBLE: (ValueKind.NUMBER, _floating),
    _Type.FLOAT: (ValueKind.NUMBER, _floating),
    _Type.BOOLEAN: (ValueKind.TRUTH, truth),
    _Type.DATE: (ValueKind.MOMENT, day),
    **dict.fromkeys(_TEXTS, (ValueKind.TEXT, text)),
    **dict.fromkeys(_MOMENTS, (ValueKind.MOMENT, moment)),
}


Columns = Mapping[str, Expression]

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod)
_NULL = constant(ValueKind.NOTHING, None)


def compile_tree(node: exp.Expr, columns: Columns, depth: int = 0) -> Expression:
    """The function that a tree stands for; columns are found by their lower-case names."""
    build = _BUILDERS.get(type(node))
    if build is None or depth > DEPTH_MAX:
        raise unknown_word(node)
    return build(node, lambda part: compile_tree(part, columns, depth + 1), columns)


Build = Callable[[exp.Expr], Expression]


def _literal(node: exp.Expr, _: Build, __: Columns) -> Expression:
    if node.is_string:
        return constant(ValueKind.TEXT, node.this)
    spelled = str(node.this)
    value = number(spelled)
    return constant(ValueKind.NUMBER, float(spelled) if "e" in spelled.lower() else value)


def _column(node: exp.Expr, _: Build, columns: Columns) -> Expression:
    found = columns.get(node.name.lower())
    if found is None or node.args.get("table"):
        raise unknown_column(node, list(columns))
    return found


def _function(node: exp.Expr, build: Build, _: Columns) -> Expression:
    name = str(node.this).lower()
    if name == "coalesce":
        return _coalesce(node, build)
    function = FUNCTIONS.get(name)
    if function is None:
        raise unknown_word(node)
    arguments = [build(one) for one in node.expressions]
    if not function.fewest <= len(arguments) <= len(function.takes):
        raise not_these_arguments(node, function.fewest, len(function.takes))
    for one, taken, argument in zip(node.expressions, function.takes, arguments, strict=False):
        _check(one, argument, taken)
    return Expression(function.kind, lambda row: function.of([one.value(row) for one in arguments]))


def _coalesce(node: exp.Expr, build: Build) -> Expression:
    choices = [build(one) for one in node.expressions]
    if not choices:
        raise not_these_arguments(node, 1, None)

    def first(row: tuple[object, ...]) -> object:
        found = (selection.value(row) for selection in choices)
        return next((value for value in found if value is not None), None)

    return Expression(_common_kind(node.expressions, choices), first)


def _connected(node: exp.Expr, build: Build, _: Columns) -> Expression:
    # A long chain is a deep tree, so that its parts are taken side by side.
    parts = [_truth(one, build) for one in node.flatten()]
    join = logic.conjunction if isinstance(node, exp.And) else logic.disjunction
    return Expression(ValueKind.TRUTH, join(parts))


def _not(node: exp.Expr, build: Build, _: Columns) -> Expression:
    return Expression(ValueKind.TRUTH, logic.negation(_truth(node.this, build)))


def _compared(node: exp.Expr, build: Build, _: Columns) -> Expression:
    left, right = _pair(node, node.expression, build)
    return Expression(ValueKind.TRUTH, logic.comparison(type(node), left, right))


def _null_safe(node: exp.Expr, build: Build, _: Columns) -> Expression:
    left, right = _pair(node, node.expression, build)
    negate = isinstance(node, exp.NullSafeNEQ)
    return Expression(ValueKind.TRUTH, logic.null_safe_equality(left, right, negate=negate))


def _between(node: exp.Expr, build: Build, _: Columns) -> Expression:
    if node.args.get("symmetric"):
        raise unknown_word(node)
    value, low = _pair(node, node.args["low"], build)
    high = _pair(node, node.args["high"], build)[1]
    parts = [
        Expression(ValueKind.TRUTH, logic.comparison(exp.GTE, value, low)),
        Expression(ValueKind.TRUTH, logic.comparison(exp.LTE, value, high)),
    ]
    return Expression(ValueKind.TRUTH, logic.conjunction(parts))


def _in(node: exp.Expr, build: Build, _: Columns) -> Expression:
    if not node.expressions:
        raise unknown_word(node)
    choices = [_pair(node, one, build)[1] for one in node.expressions]
    return Expression(ValueKind.TRUTH, logic.membership(build(node.this), choices))


def _is(node: exp.Expr, build: Build, _: Columns) -> Expression:
    if not isinstance(node.expression, exp.Null | exp.Boolean):
        raise unknown_word(node.expression)
    left, right = _pair(node, node.expression, build)
    return Expression(ValueKind.TRUTH, logic.null_safe_equality(left, right, negate=False))


def _like(node: exp.Expr, build: Build, _: Columns, escape: str = "\\") -> Expression:
    if isinstance(node.expression, exp.Any | exp.All | exp.Tuple):
        raise unknown_word(node.expression)
    value, pattern = _plain(node.this, build), _plain(node.expression, build)
    any_case = isinstance(node, exp.ILike)
    found = Expression(ValueKind.TRUTH, logic.likeness(value, pattern, escape, any_case=any_case))
    negated = node.args.get("negate")
    return Expression(ValueKind.TRUTH, logic.negation(found)) if negated else found


def _escaped(node: exp.Expr, build: Build, columns: Columns) -> Expression:
    is_one = isinstance(node.expression, exp.Literal) and len(node.expression.name) == 1
    if not isinstance(node.this, exp.Like | exp.ILike) or not is_one:
        raise unknown_word(node.expression)
    return _like(node.this, build, columns, node.expression.name)


def _rlike(node: exp.Expr, build: Build, _: Columns) -> Expression:
    value, pattern = _plain(node.this, build), _plain(node.expression, build)
    if isinstance(node.expression, exp.Literal):
        compiled(node.expression.name)
    found = Expression(ValueKind.TRUTH, lambda row: matches(value.value(row), pattern.value(row)))
    negated = node.args.get("negate")
    return Expression(ValueKind.TRUTH, logic.negation(found)) if negated else found


def _reckoned(node: exp.Expr, build: Build, _: Columns) -> Expression:
    left, right = _numeric(node.this, build), _numeric(node.expression, build)
    return Expression(ValueKind.NUMBER, logic.arithmetic(type(node), left, right))


def _negative(node: exp.Expr, build: Build, _: Columns) -> Expression:
    zero = constant(ValueKind.NUMBER, 0)
    return Expression(ValueKind.NUMBER, logic.arithmetic(exp.Sub, zero, _numeric(node.this, build)))


def _joined(node: exp.Expr, build: Build, _: Columns) -> Expression:
    # Texts that stand side by side are one text; `||` joins two of anything.
    nodes = node.expressions or [node.this, node.expression]
    parts = [_plain(one, build) for one in nodes]

    def join(row: tuple[object, ...]) -> object:
        texts = [text(part.value(row)) for part in parts]
        known = [one for one in texts if one is not None]
        return "".join(known) if len(known) == len(texts) else None

    return Expression(ValueKind.TEXT, join)


def _cast(node: exp.Expr, build: Build, _: Columns) -> Expression:
    target = cast_to(node.args["to"])
    if target is None:
        raise unknown_word(node)
    kind, cast = target
    value = _plain(node.this, build)
    return Expression(kind, lambda row: cast(value.value(row)))


def _case(node: exp.Expr, build: Build, _: Columns) -> Expression:
    nodes = [one.args["true"] for one in node.args["ifs"]]
    results = [build(one) for one in nodes]
    conditions = [_branch(node, one.this, build) for one in node.args["ifs"]]
    default = node.args.get("default")
    otherwise = build(default) if default is not None else _NULL
    kind = _common_kind([*nodes, default or node], [*results, otherwise])
    pairs = list(zip(conditions, results, strict=True))
    return Expression(kind, logic.selection(pairs, otherwise))


def _branch(node: exp.Expr, condition: exp.Expr, build: Build) -> Expression:
    if node.this is None:
        return _truth(condition, build)
    left, right = _pair(node, condition, build)
    return Expression(ValueKind.TRUTH, logic.comparison(exp.EQ, left, right))


def _item(node: exp.Expr, build: Build, _: Columns) -> Expression:
    holder, (key,) = build(node.this), map(build, node.expressions)
    _check(node.this, holder, frozenset({ValueKind.LIST, ValueKind.MAP}))

    def item(row: tuple[object, ...]) -> object:
        held, wanted = holder.value(row), key.value(row)
        if isinstance(held, Mapping):
            return held.get(wanted)
        is_there = isinstance(held, Sequence) and isinstance(wanted, int) and wanted >= 0
        return held[wanted] if is_there and wanted < len(held) else None  # type: ignore[index,arg-type,operator]

    return Expression(ValueKind.TEXT, item)


def _pair(node: exp.Expr, other: exp.Expr, build: Build) -> tuple[Expression, Expression]:
    """What a node is about and something it is compared with, if they can be."""
    left, right = build(node.this), build(other)
    kinds = {left.kind, right.kind}
    if len(kinds - {ValueKind.NOTHING}) > 1 and not (ValueKind.TEXT in kinds and kinds <= PLAIN):
        raise not_that_kind(other, right.kind, f"something to compare with a {left.kind}")
    return left, right


def _truth(node: exp.Expr, build: Build) -> Expression:
    found = build(node)
    _check(node, found, frozenset({ValueKind.TRUTH, ValueKind.NOTHING}))
    return found


def _plain(node: exp.Expr, build: Build) -> Expression:
    found = build(node)
    _check(node, found, PLAIN)
    return found


def _numeric(node: exp.Expr, build: Build) -> Expression:
    found = build(node)
    _check(node, found, frozenset({ValueKind.NUMBER, ValueKind.TEXT, ValueKind.NOTHING}))
    return found


def _check(node: exp.Expr, found: Expression, wanted: frozenset[ValueKind]) -> None:
    if found.kind not in wanted:
        raise not_that_kind(node, found.kind, " or ".join(sorted(wanted - {ValueKind.NOTHING})))


def _common_kind(nodes: Sequence[exp.Expr], found: Sequence[Expression]) -> ValueKind:
    kinds = [one.kind for one in found if one.kind is not ValueKind.NOTHING]
    for node, one in zip(nodes, found, strict=True):
        if one.kind not in (ValueKind.NOTHING, kinds[0]):
            raise not_that_kind(node, one.kind, kinds[0])
    return kinds[0] if kinds else ValueKind.NOTHING


_Builder = Callable[[exp.Expr, Build, Columns], Expression]
_BUILDERS: Mapping[type[exp.Expr], _Builder] = {
    **dict.fromkeys(_COMPARISONS, _compared),
    **dict.fromkeys(_ARITHMETIC, _reckoned),
    **dict.fromkeys((exp.And, exp.Or), _connected),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), _null_safe),
    **dict.fromkeys((exp.Like, exp.ILike), _like),
    **dict.fromkeys((exp.Cast, exp.TryCast), _cast),
    **dict.fromkeys((exp.Concat, exp.DPipe), _joined),
    exp.Anonymous: _function,
    exp.Between: _between,
    exp.Boolean: lambda node, _, __: constant(ValueKind.TRUTH, node.this),
    exp.Bracket: _item,
    exp.Case: _case,
    exp.Column: _column,
    exp.Escape: _escaped,
    exp.In: _in,
    exp.Is: _is,
    exp.Literal: _literal,
    exp.Neg: _negative,
    exp.Not: _not,
    exp.Null: lambda _, __, ___: _NULL,
    exp.Paren: lambda node, build, _: build(node.this),
    exp.RegexpLike: _rlike,
}


def row_filter(text: str, columns: Sequence[Column]) -> Callable[[Row], bool]:
    """Whether a row, in the order of its columns, meets a condition.

    `InvalidRequest` points at the word that makes no sense.
    """
    node = parsed_condition(text)
    known = {
        column.name.lower(): Expression(KIND_OF[column.type], itemgetter(place))
        for place, column in enumerate(columns)
    }
    try:
        condition = compile_tree(node, known)
    except RecursionError:
        raise too_deep() from None
    if condition.kind not in (ValueKind.TRUTH, ValueKind.NOTHING):
        raise not_that_kind(node, condition.kind, "something that is true or false")
    return lambda row: truth(condition.value(row)) is True
