"""Narrowing: a request with a filter on partition columns, as a request for partitions."""

from collections.abc import Sequence
from dataclasses import replace

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.merge.predicate import Filter, bind_filter
from lakewarden.engine.read.query.prune import prune_partitions
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.snapshot import Snapshot


def with_partition_filter(
    plan_request: PlanRequest, state: Snapshot, names: Sequence[str]
) -> PlanRequest:
    """The request for those of some partitions that it allows, by their names and by its filter."""
    allowed = _allowed(plan_request.filter, state, names)
    if allowed is None:
        return plan_request
    wished = (
        allowed if plan_request.partitions is None else allowed & frozenset(plan_request.partitions)
    )
    return replace(plan_request, filter=None, partitions=tuple(sorted(wished)))


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
