"""The settings that arguments of `run_clustering` stand for."""

import difflib
from collections.abc import Mapping, Sequence

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.services.clustering.settings import (
    LAYOUT,
    REGEX,
    SELECTED,
    SORT_COLUMNS,
    LayoutStrategy,
)
from lakewarden.procedures.declaring.texts import listed
from lakewarden.procedures.declaring.words import one_word

_LAYOUTS: Mapping[str, LayoutStrategy] = {
    "linear": LayoutStrategy.LINEAR,
    "z-order": LayoutStrategy.ZORDER,
    "hilbert": LayoutStrategy.HILBERT,
}


def clustering_options(
    columns: Sequence[str],
    options: Mapping[str, str] | None,
    *,
    order: str | None,
    strategy: str | None,
    selected: str | None,
    pattern: str | None,
) -> Mapping[str, str]:
    """The settings of a call: arguments win over options, named partitions over a pattern."""
    given = dict(options or {})
    if order is not None:
        names = [_column(columns, name) for name in listed(order)]
        given[SORT_COLUMNS.key] = ",".join(names)
    if strategy is not None:
        given[LAYOUT.key] = _LAYOUTS[one_word("order_strategy", strategy, _LAYOUTS)].value
    if selected is not None:
        given[SELECTED.key] = selected
    if pattern is not None:
        given[REGEX.key] = pattern
    return given


def _column(columns: Sequence[str], name: str) -> str:
    """The column of that name in any case."""
    known = {column.lower(): column for column in columns}
    found = known.get(name.lower())
    if found is None:
        nearest = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
        raise InvalidRequest(
            "unknown_column",
            what=f"The table has no column {name!r} to sort by.",
            why=f"It has {', '.join(columns)}.",
            now=f"Did you mean {known[nearest[0]]!r}?" if nearest else "Choose one of these.",
            column=name,
        )
    return found
