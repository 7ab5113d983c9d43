"""Parsing: the tree of a condition in SQL text, or a refusal that points at a word of it.

Filters of reads, of procedures and of the command line are parsed here, and nowhere else.
"""

import difflib
from collections.abc import Mapping, Sequence
from typing import ClassVar

from sqlglot import exp, parse
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError, TokenError

from lakewarden.engine.kernel.errors import InvalidRequest

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
