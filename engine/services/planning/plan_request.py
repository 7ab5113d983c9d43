"""Requests: what the caller of a service asks for beyond what is set."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.merge.predicate import Filter, bind_filter
from lakewarden.engine.read.query.prune import prune_partitions
from lakewarden.engine.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Limits and requests for one plan; an explicit request does not wait for triggers."""

    cancellable: bool | None = None
    # Bytes of the files that are read, and how many file groups at most.
    max_bytes: int | None = None
    max_file_groups: int | None = None
    # These partitions only; the others come back in the next plan.
    partitions: tuple[str, ...] | None = None
    # Those of which partition columns say so only; the others come back, too.
    filter: Filter | None = None
    # Wait for Hudi's triggers, as inline services do.
    honour_trigger: bool = False


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
