"""Services in history: what plans asked for, and which files cleans and rollbacks removed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from lakewarden.engine.formats.instant_metadata import clean, compaction, replace, rollback
from lakewarden.engine.formats.instant_metadata.clean import CleanMetadata, CleanPlan
from lakewarden.engine.formats.instant_metadata.codec import TORN_PLAN
from lakewarden.engine.formats.instant_metadata.compaction import CompactionPlan
from lakewarden.engine.formats.instant_metadata.replace import ClusteringPlan
from lakewarden.engine.formats.instant_metadata.rollback import RollbackMetadata
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBackFile:
    """A file that a rollback was to remove, and whether it did."""

    instant: str
    undone: str
    partition: str
    file: str
    succeeded: bool


def rollbacks(history: History) -> Iterator[tuple[str, RollbackMetadata]]:
    """The completed rollbacks on the active timeline, newest first."""
    for recorded in history.completed((Action.ROLLBACK,)):
        yield recorded.instant.requested, _decoded(recorded)


def removals(history: History, instant: str) -> Iterator[RolledBackFile]:
    """What a completed rollback has done, file by file."""
    metadata = _decoded(history.named(instant, (Action.ROLLBACK,)))
    undone = ", ".join(metadata.commits_rollback)
    for partition in sorted(metadata.partition_metadata):
        found = metadata.partition_metadata[partition]
        for succeeded, files in (
            (True, found.success_delete_files),
            (False, found.failed_delete_files),
        ):
            for file in files:
                yield RolledBackFile(
                    instant=instant,
                    undone=undone,
                    partition=partition,
                    file=file,
                    succeeded=succeeded,
                )


def _decoded(recorded: Recorded) -> RollbackMetadata:
    return rollback.decode(recorded.content, recorded.path)


def cleans(history: History, *, archived: bool) -> Iterator[tuple[Instant, CleanMetadata]]:
    """The completed cleans with their metadata, newest first."""
    for recorded in history.completed((Action.CLEAN,), EVER, archived=archived):
        yield recorded.instant, clean.decode(recorded.content, recorded.path)
