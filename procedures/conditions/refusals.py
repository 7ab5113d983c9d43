"""Refusals: what is wrong with a condition, and at which word."""

import difflib
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.errors import ParseError

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.conditions.expression import ValueKind, bad_filter

_TAKEN = "A filter knows comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, RLIKE, IS NULL, CASE, CAST,"
_TAKEN += " arithmetic, and the functions in docs/reference/procedures.md"


def unknown_word(node: exp.Expr) -> InvalidRequest:
    """A part that conditions don't have."""
    return bad_filter(f"A filter cannot use {_word(node)}.", f"{_TAKEN}.", "Use only these.")


def unknown_column(node: exp.Expr, columns: Sequence[str]) -> InvalidRequest:
    nearest = difflib.get_close_matches(node.name.lower(), columns, n=1, cutoff=0.5)
    return bad_filter(
        f"The answer has no column {_word(node)}.",
        f"Its columns are {', '.join(columns)}.",
        f"Did you mean {nearest[0]!r}?" if nearest else "Use one of these, or quote a text.",
    )


def not_that_kind(node: exp.Expr, kind: ValueKind, wanted: str) -> InvalidRequest:
    return bad_filter(
        f"{_word(node)} is a {kind}, but the filter needs {wanted}.",
        "A filter compares values of one kind only.",
        "Use a cast, or another column.",
    )


def not_these_arguments(node: exp.Expr, fewest: int, most: int | None) -> InvalidRequest:
    counts = f"{fewest} or more" if most is None else " to ".join(map(str, {fewest, most}))
    return bad_filter(
        f"{_word(node)} has {len(node.expressions)} arguments.",
        f"It takes {counts}.",
        "Correct them.",
    )


def unparsable(error: ParseError) -> InvalidRequest:
    """What the parser says is wrong, and where."""
    found = error.errors[0] if error.errors else {}
    word, before = found.get("highlight"), found.get("start_context") or ""
    place = f"near {word!r}, at character {len(before) + 1}" if word else "at its end"
    reason = str(found.get("description") or error).partition(" for <class")[0].rstrip(".")
    return bad_filter(f"The filter is not valid {place}.", f"{reason}.", "Correct it there.")


def _word(node: exp.Expr) -> str:
    """The first word of a node that stands in the text, and where."""
    own = node.find(exp.Column) if isinstance(node, exp.Column) else node
    placed = [one for one in (own or node).walk() if "start" in one.meta]
    if not placed:
        return f"{node.sql(dialect='spark')!r:.60}"
    first = min(placed, key=lambda one: int(one.meta["start"]))
    name = node.sql(dialect="spark", normalize_functions=False)
    return f"{name!r:.60} (at character {first.meta['start'] + 1})"
