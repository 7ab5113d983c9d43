"""Requests: what the caller of a service asks for beyond what is set."""

from dataclasses import dataclass

from lakewarden.engine.read.merge.predicate import Filter


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
