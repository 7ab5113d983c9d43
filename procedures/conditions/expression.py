"""Expressions: a part of a condition, with the kind of value that it gives for a row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.sql_types import SqlType

Row = tuple[object, ...]


class Kind(StrEnum):
    """What an expression gives, apart from null, which each of them may give."""

    TEXT = "text"
    NUMBER = "number"
    TRUTH = "truth value"
    MOMENT = "time"
    LIST = "list"
    MAP = "map"
    NOTHING = "null"


KIND_OF: Mapping[SqlType, Kind] = {
    SqlType.STRING: Kind.TEXT,
    SqlType.BIGINT: Kind.NUMBER,
    SqlType.DOUBLE: Kind.NUMBER,
    SqlType.BOOLEAN: Kind.TRUTH,
    SqlType.TIMESTAMP: Kind.MOMENT,
    SqlType.STRINGS: Kind.LIST,
    SqlType.OPTIONS: Kind.MAP,
}

# Those that a text can be compared with, and be made of.
PLAIN = frozenset({Kind.TEXT, Kind.NUMBER, Kind.TRUTH, Kind.MOMENT, Kind.NOTHING})


@dataclass(frozen=True, slots=True)
class Expression:
    """A function of a row; null is None."""

    kind: Kind
    value: Callable[[Row], object]


def constant(kind: Kind, value: object) -> Expression:
    return Expression(kind, lambda _: value)


def bad_filter(what: str, why: str, now: str) -> InvalidRequest:
    """The error for a condition that means nothing."""
    return InvalidRequest("bad_filter", what=what, why=why, now=now, argument="filter")
