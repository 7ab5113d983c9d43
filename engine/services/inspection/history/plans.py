"""Plans in history: what past and pending services were asked to do.

A plan that is not whole was never published; it is shown without figures rather than skipped.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

from lakewarden.engine.formats.instant_metadata import clean, compaction, replace
from lakewarden.engine.formats.instant_metadata.clean import CleanPlan
from lakewarden.engine.formats.instant_metadata.codec import TORN_PLAN
from lakewarden.engine.formats.instant_metadata.compaction import CompactionPlan
from lakewarden.engine.formats.instant_metadata.replace import ClusteringPlan
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.services.inspection.history.history import EVER, History, Recorded
from lakewarden.engine.timeline.instants.instant import Action, Instant

Plan = TypeVar("Plan")


def compaction_plans(history: History) -> Iterator[tuple[Instant, CompactionPlan | None]]:
    """The compactions on the active timeline, newest first; no plan where it is torn."""
    for recorded in history.planned((Action.COMPACTION,)):
        yield recorded.instant, _whole(compaction.decode_plan, recorded)


def clustering_plans(history: History) -> Iterator[tuple[Instant, ClusteringPlan | None]]:
    """The clusterings on the active timeline, newest first.

    Before version 8 they began as replace commits, as overwrites of partitions do, which have no
    plan and are none.
    """
    for recorded in history.planned((Action.CLUSTERING, Action.REPLACE_COMMIT)):
        is_clustering = recorded.instant.action is Action.CLUSTERING
        request = _whole(replace.decode_plan, recorded) if recorded.content else None
        plan = None if request is None else request.clustering_plan
        if plan is not None or is_clustering:
            yield recorded.instant, plan


def clean_plans(history: History, *, archived: bool) -> Iterator[tuple[Instant, CleanPlan | None]]:
    """The cleans, planned, under way or done, newest first."""
    for recorded in history.planned((Action.CLEAN,), EVER, archived=archived):
        yield recorded.instant, _whole(clean.decode_plan, recorded)


def _whole(decode: Callable[[bytes, str], Plan], recorded: Recorded) -> Plan | None:
    try:
        return decode(recorded.content, recorded.path)
    except CorruptTable as error:
        if error.code != TORN_PLAN:
            raise
        return None
