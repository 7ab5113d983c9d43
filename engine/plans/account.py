"""The account of a plan: what it says of itself, so that the next one may go on from it.

A plan with an account names everything it leaves out. Those of other engines do not: what their
filters, their limits or other plans kept from them, they forget.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from lakewarden.engine.formats.payloads import compaction
from lakewarden.engine.formats.payloads import replace as clustering
from lakewarden.engine.plans.service import Service
from lakewarden.engine.snapshot import Snapshot

BEGUN_KEY = "lakewarden.window.begun"
RULES_KEY = "lakewarden.window.rules"


@dataclass(frozen=True, slots=True)
class Account:
    """Since when and by which rules everything is in a plan, or named as left out by it."""

    # Every write that the plan does not know of began at this time or later.
    begun: str
    # By what partitions were judged that are not named, as the planner tells it.
    rules: str = ""


def account_of(moment: Snapshot, rules: str) -> Account:
    """The account of a plan that is drafted at a moment."""
    active = moment.timeline.active
    under_way = (instant.requested for instant in active.pending() if instant.action.is_write)
    return Account(min(under_way, default=active.newest_time() or ""), rules)


def account_in(extra: Mapping[str, str]) -> Account | None:
    """The account in a plan's extra metadata, if it has one."""
    begun = extra.get(BEGUN_KEY)
    return None if begun is None else Account(begun, extra.get(RULES_KEY, ""))


def with_account(
    service: Service, content: bytes, account: Account, missing: Iterable[str]
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


def _extra(extra: Mapping[str, str], account: Account) -> dict[str, str]:
    return {**extra, BEGUN_KEY: account.begun, RULES_KEY: account.rules}


def _both(named: Iterable[str], missing: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*named, *missing}))
