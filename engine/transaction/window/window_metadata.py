"""Window metadata: what a plan says of itself, so that the next one may go on from it.

A plan with an account names everything it leaves out. Those of other engines do not: what their
filters, their limits or other plans kept from them, they forget.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from lakewarden.engine.formats.instant_metadata import compaction
from lakewarden.engine.formats.instant_metadata import replace as clustering
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.transaction.state.service import Service

STARTED_KEY = "lakewarden.window.begun"
RULES_KEY = "lakewarden.window.rules"


@dataclass(frozen=True, slots=True)
class WindowMetadata:
    """Since when and by which rules everything is in a plan, or named as skipped by it."""

    # Every write that the plan does not know of began at this time or later.
    started: str
    # By what partitions were judged that are not named, as the planner tells it.
    rules: str = ""


def window_metadata_of(snapshot: Snapshot, rules: str) -> WindowMetadata:
    """The account of a plan that is drafted at a moment."""
    active = snapshot.timeline.active
    under_way = (instant.requested for instant in active.pending() if instant.action.is_write)
    return WindowMetadata(min(under_way, default=active.newest_time() or ""), rules)


def window_metadata_in(extra: Mapping[str, str]) -> WindowMetadata | None:
    """The account in a plan's extra metadata, if it has one."""
    started = extra.get(STARTED_KEY)
    return None if started is None else WindowMetadata(started, extra.get(RULES_KEY, ""))


def with_window_metadata(
    service: Service, content: bytes, account: WindowMetadata, missing: Iterable[str]
) -> bytes:
    """A plan with its account, and with partitions that it leaves out besides those it names."""
    path = f"the draft of a {service}"
    if service is Service.CLUSTERING:
        requested = clustering.decode_plan(content, path)
        plan = requested.clustering_plan or clustering.ClusteringPlan()
        plan = replace(
            plan,
            extra_metadata=_extra(plan.extra_metadata, account),
            missing_schedule_partitions=_both(plan.missing_schedule_partitions, missing),
        )
        return clustering.encode_plan(replace(requested, clustering_plan=plan))
    compacted = compaction.decode_plan(content, path)
    return compaction.encode_plan(
        replace(
            compacted,
            extra_metadata=_extra(compacted.extra_metadata, account),
            missing_schedule_partitions=_both(compacted.missing_schedule_partitions, missing),
        )
    )


def _extra(extra: Mapping[str, str], account: WindowMetadata) -> dict[str, str]:
    return {**extra, STARTED_KEY: account.started, RULES_KEY: account.rules}


def _both(named: Iterable[str], missing: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*named, *missing}))
