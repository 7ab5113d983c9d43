"""Refusals: a value of a kind that does not go where it stands."""

from sqlglot import exp

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.conditions.parsing import bad_filter, word
from lakewarden.procedures.conditions.expression import ValueKind


def not_that_kind(node: exp.Expr, kind: ValueKind, wanted: str) -> InvalidRequest:
    return bad_filter(
        f"{word(node)} is a {kind}, but the filter needs {wanted}.",
        "A filter compares values of one kind only.",
        "Use a cast, or another column.",
    )


def not_these_arguments(node: exp.Expr, fewest: int, most: int | None) -> InvalidRequest:
    counts = f"{fewest} or more" if most is None else " to ".join(map(str, {fewest, most}))
    return bad_filter(
        f"{word(node)} has {len(node.expressions)} arguments.",
        f"It takes {counts}.",
        "Correct them.",
    )
