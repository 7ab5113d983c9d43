"""Parsing: the tree of a condition in SQL text, or a refusal that points at a word of it.

Filters of reads, of procedures and of the command line are parsed here, and nowhere else.

Constants: a value that a condition spells, in the type of what it is compared with.

Functions of filters in SQL text that expression indexes know, evaluated by the same code.

What a row has to fulfil and what an index says of its file are then the same to the letter. Times
are seen in UTC. The functions have names in Arrow's registry, so that expressions with them travel
to other processes.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp, parse
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError, TokenError

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.entries.expressions import IndexExpression

# Longer ones are not written by hand, and parsing takes time.
TEXT_MAX = 20_000
# Deeper trees would end in Python's own limit.
DEPTH_MAX = 100

_TAKEN = "A filter knows comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, RLIKE, IS NULL, CASE, CAST,"
_TAKEN += " arithmetic, and the functions in"


class _Dialect(Spark):
    """Spark's expressions, with functions as they are written: we know ours by name."""

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
        FUNCTIONS: ClassVar[Mapping[str, object]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[Mapping[object, object]] = {}
        FUNCTION_PARSERS: ClassVar[Mapping[str, object]] = {
            name: parser
            for name, parser in Spark.Parser.FUNCTION_PARSERS.items()
            if name in ("CAST", "TRY_CAST")
        }


def parsed_condition(text: str) -> exp.Expr:
    """The tree of one condition; what its words mean is for the caller to say."""
    if len(text) > TEXT_MAX:
        raise too_deep()
    try:
        nodes = [node for node in parse(text, dialect=_Dialect) if node is not None]
    except ParseError as error:
        raise _unparsable(error) from None
    except (TokenError, SqlglotError) as error:
        raise bad_filter(
            "The filter is not valid SQL.", f"{error}.", "Look for an open quote or bracket."
        ) from None
    except RecursionError:
        raise too_deep() from None
    if len(nodes) != 1:
        raise bad_filter(
            f"The filter has {len(nodes)} conditions.", "It is one.", "Join them with AND."
        )
    if isinstance(nodes[0], exp.Alias):
        raise unknown_word(nodes[0].args["alias"])
    return nodes[0]


def bad_filter(what: str, why: str, now: str) -> InvalidRequest:
    """The error for a condition that means nothing."""
    return InvalidRequest("bad_filter", what=what, why=why, now=now, argument="filter")


def unknown_word(node: exp.Expr) -> InvalidRequest:
    """A part that conditions on answers don't have."""
    return cannot_use(node, "docs/reference/procedures.md")


def cannot_use(node: exp.Expr, page: str) -> InvalidRequest:
    """A part that conditions don't have; a page says what they have."""
    return bad_filter(f"A filter cannot use {word(node)}.", f"{_TAKEN} {page}.", "Use only these.")


def unknown_column(
    node: exp.Expr, columns: Sequence[str], holder: str = "The answer"
) -> InvalidRequest:
    """A name that none of the columns has."""
    name = node.name.lower()
    nearest = difflib.get_close_matches(name, [one.lower() for one in columns], n=1, cutoff=0.5)
    return bad_filter(
        f"{holder} has no column {word(node)}.",
        f"Its columns are {', '.join(columns)}.",
        f"Did you mean {nearest[0]!r}?" if nearest else "Use one of these, or quote a text.",
    )


def too_deep() -> InvalidRequest:
    """A condition that is too long to be looked at."""
    return bad_filter(
        "The filter is too long, or nested too deeply.",
        f"It may have {TEXT_MAX} characters.",
        "Simplify it.",
    )


def word(node: exp.Expr) -> str:
    """The first word of a node that stands in the text, and where."""
    placed = [one for one in node.walk() if "start" in one.meta]
    if not placed:
        return f"{node.sql(dialect='spark')!r:.60}"
    first = min(placed, key=lambda one: int(one.meta["start"]))
    name = node.sql(dialect="spark", normalize_functions=False)
    return f"{name!r:.60} (at character {first.meta['start'] + 1})"


def _unparsable(error: ParseError) -> InvalidRequest:
    """What the parser says is wrong, and where."""
    found = error.errors[0] if error.errors else {}
    spelled, before = found.get("highlight"), found.get("start_context") or ""
    place = f"near {spelled!r}, at character {len(before) + 1}" if spelled else "at its end"
    reason = str(found.get("description") or error).partition(" for <class")[0].rstrip(".")
    return bad_filter(f"The filter is not valid {place}.", f"{reason}.", "Correct it there.")


_types = pa.types
_Type = exp.DataType.Type
_ARROW_TYPES: Mapping[object, pa.DataType] = {
    _Type.TINYINT: pa.int8(),
    _Type.SMALLINT: pa.int16(),
    _Type.INT: pa.int32(),
    _Type.BIGINT: pa.int64(),
    _Type.FLOAT: pa.float32(),
    _Type.DOUBLE: pa.float64(),
    _Type.BOOLEAN: pa.bool_(),
    _Type.DATE: pa.date32(),
    _Type.TIMESTAMP: pa.timestamp("us", "UTC"),
    _Type.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    _Type.TIMESTAMPLTZ: pa.timestamp("us", "UTC"),
    _Type.TIMESTAMPNTZ: pa.timestamp("us"),
    **dict.fromkeys((_Type.TEXT, _Type.VARCHAR, _Type.CHAR), pa.string()),
}


def constant(node: exp.Expr, type_: pa.DataType | None = None) -> pa.Scalar | None:
    """A constant, in a type if one is wished for; None for what depends on the row."""
    match node:
        case exp.Paren():
            return constant(node.this, type_)
        case exp.Null():
            return pa.scalar(None, type_)
        case exp.Boolean():
            return pa.scalar(bool(node.this))
        case exp.Neg(this=exp.Literal(is_string=False)):
            return _number(node, f"-{node.this.name}", type_)
        case exp.Literal() if not node.is_string:
            return _number(node, node.name, type_)
        case exp.Literal():
            return _spelled(node, node.name, type_)
        case (
            exp.Cast(this=exp.Literal(is_string=True))
            | exp.TryCast(this=exp.Literal(is_string=True))
        ):
            cast = arrow_type(node.args["to"])
            is_time = _types.is_temporal(cast) and type_ is not None
            wished = type_ if is_time and _types.is_temporal(type_) else cast
            return _spelled(node, node.this.name, wished)
    return None


def arrow_type(type_: exp.DataType) -> pa.DataType:
    """The Arrow type that a cast names."""
    if type_.this is _Type.DECIMAL:
        given = [int(one.name) for one in type_.expressions]
        return pa.decimal128(*given) if given else pa.decimal128(10, 0)
    found = _ARROW_TYPES.get(type_.this)
    if found is None:
        raise unknown(type_)
    return found


def unknown(node: exp.Expr) -> InvalidRequest:
    """A part that the filters of tables don't have."""
    return cannot_use(node, "docs/guides/python.md")


def _number(node: exp.Expr, text: str, type_: pa.DataType | None) -> pa.Scalar:
    """A number in a numeric type that has it, else as it is written."""
    if text.lstrip("-").isdecimal():
        return _spelled(node, text, type_ or pa.int64())
    if type_ is None or _types.is_integer(type_):
        return pa.scalar(float(text) if "e" in text.lower() else Decimal(text))
    return _spelled(node, text, type_)


def _spelled(node: exp.Expr, text: str, type_: pa.DataType | None) -> pa.Scalar:
    is_quoted = any(one.is_string for one in node.find_all(exp.Literal))
    is_text = type_ is None or _types.is_string(type_) or _types.is_large_string(type_)
    if not is_quoted and (is_text or _types.is_temporal(type_)):
        raise _no_value(node, type_, f"Quote it: '{text}'.")
    try:
        return pa.scalar(text) if type_ is None else _typed_value(text, type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _no_value(node, type_, "Correct the value, or cast the column.") from None


def _typed_value(text: str, type_: pa.DataType) -> pa.Scalar:
    """The value of a type that a text spells; a time without zone means UTC."""
    if _types.is_timestamp(type_) and type_.tz and not re.search(r"\d:.*(Z|[+-][\d:]+)$", text):
        return pa.scalar(text).cast(pa.timestamp(type_.unit)).cast(type_)
    return pa.scalar(text).cast(type_)


def _no_value(node: exp.Expr, type_: pa.DataType | None, now: str) -> InvalidRequest:
    return bad_filter(
        f"{word(node)} is not a value of type {type_}.",
        "A value is compared with a column in the column's type.",
        now,
    )


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function of one value, by the name and with the options that an index of it has."""

    function: str
    argument: exp.Expr
    options: tuple[tuple[str, str], ...]

    @property
    def sees_moments(self) -> bool:
        """Whether the same moment has different results in different zones."""
        return self.function in _OF_MOMENTS


@dataclass(frozen=True, slots=True)
class _Shape:
    function: str
    # What stands behind the value in the brackets, and what it is if it does not stand there.
    options: tuple[str, ...] = ()
    default: str | None = None


_SHAPES: Mapping[str, _Shape] = {
    **{name: _Shape(name) for name in ("lower", "upper", "to_date", "unix_timestamp")},
    **{name: _Shape(name, ("days",)) for name in ("date_add", "date_sub")},
    **dict.fromkeys(("substring", "substr"), _Shape("substring", ("pos", "len"))),
    "date_format": _Shape("date_format", ("format",)),
    "from_unixtime": _Shape("from_unixtime", ("format",), "yyyy-MM-dd HH:mm:ss"),
}
NAMES = frozenset(_SHAPES)
_OF_MOMENTS = frozenset({"date_add", "date_format", "date_sub", "from_unixtime", "to_date"})
# The types that all others are cast to.
_PLAIN = (
    pa.string(),
    pa.int64(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.timestamp("us"),
)


def function_call(node: exp.Expr) -> FunctionCall | None:
    """The call of a function that indexes know; None for anything else."""
    if not isinstance(node, exp.Anonymous):
        return None
    shape = _SHAPES.get(str(node.this).lower())
    if shape is None or not node.expressions:
        return None
    argument, *others = node.expressions
    given = [constant(one) for one in others]
    if not others and shape.default is not None:
        given = [pa.scalar(shape.default)]
    known = [one for one in given if one is not None and one.is_valid]
    if not len(known) == len(given) == len(shape.options):
        return None
    texts = [str(one.as_py()) for one in known]
    return FunctionCall(shape.function, argument, tuple(zip(shape.options, texts, strict=True)))


def evaluated(
    call: FunctionCall, value: pc.Expression, type_: pa.DataType, node: exp.Expr
) -> pc.Expression:
    """The function of a value of some type; what is not exactly Spark's is refused."""
    expression = IndexExpression(call.function, dict(call.options))
    plain = _plain_type(type_)
    refusal = expression.refusal(plain)
    if refusal is not None or any(not text.lstrip("-").isdecimal() for text in _numbers(call)):
        why = refusal or "Its places and days are whole numbers."
        raise bad_filter(f"A filter cannot use {word(node)}.", why, "Write it otherwise.")
    texts = [pc.scalar(text) for _, text in call.options]
    return pc.Expression._call(_name(call.function, plain), [value.cast(plain), *texts])


def _numbers(call: FunctionCall) -> Sequence[str]:
    return [text for name, text in call.options if name != "format"]


def _plain_type(type_: pa.DataType) -> pa.DataType:
    """The type to evaluate in: of texts, whole numbers, days and moments one each."""
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if pa.types.is_large_string(type_):
        return pa.string()
    if pa.types.is_signed_integer(type_):
        return pa.int64()
    if pa.types.is_timestamp(type_) and type_.unit != "ns":
        return pa.timestamp("us", "UTC" if type_.tz else None)
    return type_


def _name(function: str, type_: pa.DataType) -> str:
    return f"lakewarden {function} {type_}"


def _register(shape: _Shape, type_: pa.DataType) -> None:
    """Make a function known to Arrow, if it takes values of the type."""
    sample = dict.fromkeys(shape.options, "1") | {"format": "yyyy"}
    sample = {name: sample[name] for name in shape.options}
    expression = IndexExpression(shape.function, sample)
    if expression.refusal(type_) is not None:
        return

    def work(
        _: object, value: pa.Array | pa.Scalar, *options: pa.Array | pa.Scalar
    ) -> pa.Array | pa.Scalar:
        if isinstance(value, pa.Scalar):
            return work(_, pa.array([value.as_py()], value.type), *options)[0]
        if not len(value):
            return expression.of(value)
        texts = [_only(one) for one in options]
        return IndexExpression(shape.function, dict(zip(shape.options, texts, strict=True))).of(
            value
        )

    pc.register_scalar_function(
        work,
        _name(shape.function, type_),
        {"summary": shape.function, "description": "As Spark has it, times in UTC."},
        {"value": type_} | dict.fromkeys(shape.options, pa.string()),
        expression.of(pa.array([], type_)).type,
    )


def _only(option: pa.Array | pa.Scalar) -> str:
    """An option's text; Arrow hands constants over in either form."""
    return str(option.as_py() if isinstance(option, pa.Scalar) else option[0].as_py())


for _shape in {one.function: one for one in _SHAPES.values()}.values():
    for _type in _PLAIN:
        _register(_shape, _type)
