"""Narrowing: a wish with a filter on partition columns, as a wish for partitions."""

from collections.abc import Sequence
from dataclasses import replace

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.predicate import Filter, bind_filter
from lakewarden.engine.read.prune import prune_partitions
from lakewarden.engine.services.wish import Wish
from lakewarden.engine.snapshot import Snapshot


def narrowed(wish: Wish, state: Snapshot, names: Sequence[str]) -> Wish:
    """The wish for those of some partitions that it allows, by their names and by its filter."""
    allowed = _allowed(wish.filter, state, names)
    if allowed is None:
        return wish
    wished = allowed if wish.partitions is None else allowed & frozenset(wish.partitions)
    return replace(wish, filter=None, partitions=tuple(sorted(wished)))


def _allowed(
    filter_: Filter | None, state: Snapshot, names: Sequence[str]
) -> frozenset[str] | None:
    """The partitions that may hold rows that a filter keeps; None where it allows all."""
    scheme, schema = state.config.partitions, state.reader_schema()
    predicate = bind_filter(filter_, schema)
    if predicate is None:
        return None
    own = {field.name for field in scheme.fields}
    strangers = [name for name in predicate.columns if name not in own]
    if strangers:
        columns = ", ".join(sorted(own)) or "none"
        raise InvalidRequest(
            "bad_filter",
            what=f"The column {strangers[0]!r} cannot limit a plan.",
            why=f"A plan takes whole files of partitions; its partition columns: {columns}.",
            now="Filter by partition columns, or name the partitions.",
            column=strangers[0],
        )
    kept, _ = prune_partitions(names, scheme, schema, predicate)
    return frozenset(kept)
