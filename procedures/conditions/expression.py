"""Expressions: a part of a condition, with the kind of value that it gives for a row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakewarden.procedures.declaring.declaration import SqlType

Row = tuple[object, ...]


class ValueKind(StrEnum):
    """What an expression gives, apart from null, which each of them may give."""

    TEXT = "text"
    NUMBER = "number"
    TRUTH = "truth value"
    MOMENT = "time"
    LIST = "list"
    MAP = "map"
    NOTHING = "null"


KIND_OF: Mapping[SqlType, ValueKind] = {
    SqlType.STRING: ValueKind.TEXT,
    SqlType.BIGINT: ValueKind.NUMBER,
    SqlType.DOUBLE: ValueKind.NUMBER,
    SqlType.BOOLEAN: ValueKind.TRUTH,
    SqlType.TIMESTAMP: ValueKind.MOMENT,
    SqlType.STRINGS: ValueKind.LIST,
    SqlType.OPTIONS: ValueKind.MAP,
}

# Those that a text can be compared with, and be made of.
PLAIN = frozenset(
    {ValueKind.TEXT, ValueKind.NUMBER, ValueKind.TRUTH, ValueKind.MOMENT, ValueKind.NOTHING}
)


@dataclass(frozen=True, slots=True)
class Expression:
    """A function of a row; null is None."""

    kind: ValueKind
    value: Callable[[Row], object]


def constant(kind: ValueKind, value: object) -> Expression:
    return Expression(kind, lambda _: value)
