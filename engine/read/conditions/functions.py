"""Functions of filters in SQL text that expression indexes know, evaluated by the same code.

What a row has to fulfil and what an index says of its file are then the same to the letter. Times
are seen in UTC. The functions have names in Arrow's registry, so that expressions with them travel
to other processes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from lakewarden.engine.metadata.entries.expressions import Expression
from lakewarden.engine.read.conditions.constants import constant
from lakewarden.engine.read.conditions.parsing import bad_filter, word


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
    expression = Expression(call.function, dict(call.options))
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
    expression = Expression(shape.function, sample)
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
        return Expression(shape.function, dict(zip(shape.options, texts, strict=True))).of(value)

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
