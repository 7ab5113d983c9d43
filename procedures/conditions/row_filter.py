"""The row filter: a SQL condition over the columns of an answer, checked before any work is done.

Names are found in any case. A row is given where the condition is true, not where it is unknown.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import ClassVar

from sqlglot import exp, parse
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError, TokenError

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.conditions.compile import compile_tree
from lakewarden.procedures.conditions.expression import (
    KIND_OF,
    Expression,
    Row,
    ValueKind,
    bad_filter,
)
from lakewarden.procedures.conditions.refusals import not_that_kind, unknown_word, unparsable
from lakewarden.procedures.conditions.values import truth
from lakewarden.procedures.declaring.declaration import Column

# Longer ones are not written by hand, and parsing takes time.
TEXT_MAX = 20_000


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


def row_filter(text: str, columns: Sequence[Column]) -> Callable[[Row], bool]:
    """Whether a row, in the order of its columns, meets a condition.

    `InvalidRequest` points at the word that makes no sense.
    """
    node = _parsed(text)
    known = {
        column.name.lower(): Expression(KIND_OF[column.type], itemgetter(place))
        for place, column in enumerate(columns)
    }
    try:
        condition = compile_tree(node, known)
    except RecursionError:
        raise _too_deep() from None
    if condition.kind not in (ValueKind.TRUTH, ValueKind.NOTHING):
        raise not_that_kind(node, condition.kind, "something that is true or false")
    return lambda row: truth(condition.value(row)) is True


def _parsed(text: str) -> exp.Expr:
    if len(text) > TEXT_MAX:
        raise _too_deep()
    try:
        nodes = [node for node in parse(text, dialect=_Dialect) if node is not None]
    except ParseError as error:
        raise unparsable(error) from None
    except (TokenError, SqlglotError) as error:
        raise bad_filter(
            "The filter is not valid SQL.", f"{error}.", "Look for an open quote or bracket."
        ) from None
    except RecursionError:
        raise _too_deep() from None
    if len(nodes) != 1:
        raise bad_filter(
            f"The filter has {len(nodes)} conditions.", "It is one.", "Join them with AND."
        )
    if isinstance(nodes[0], exp.Alias):
        raise unknown_word(nodes[0].args["alias"])
    return nodes[0]


def _too_deep() -> InvalidRequest:
    return bad_filter(
        "The filter is too long, or nested too deeply.",
        f"It may have {TEXT_MAX} characters.",
        "Simplify it.",
    )
