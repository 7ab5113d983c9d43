"""What stands against a plan at its commit: writes to its file groups that it does not know of.

An immutable plan keeps writes away, so that nothing should be found; but Java's writers may be set
to write in spite of it, and then the plan has to give way, or it would remove their rows. A
cancellable plan keeps no writer away. It gives way even to a write that has not committed yet,
which would otherwise find its file groups gone at its own commit.
"""

from collections.abc import Iterator, Mapping

from lakewarden.engine.conflicts.conflicts import Conflicting, ConflictKind
from lakewarden.engine.conflicts.touched_groups import (
    PLANNED,
    Touched,
    TouchKind,
    planned_by,
    touched_by,
)
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.timeline.active import ActiveTimeline
from lakewarden.engine.timeline.instants.instant import Action, Instant

KINDS = {
    Action.COMPACTION: TouchKind.COMPACTION,
    Action.LOG_COMPACTION: TouchKind.LOG_COMPACTION,
    Action.CLUSTERING: TouchKind.CLUSTERING,
}


def find_plan_conflicts(
    plan: str, kind: TouchKind, groups: frozenset[FileGroupId], active: ActiveTimeline
) -> tuple[Conflicting, ...]:
    """The writes completed since a plan was published that it would undo."""
    return tuple(
        conflict
        for instant in active.completed_between(plan, None)
        for conflict in _overlaps(active, instant, plan, kind, groups)
    )


def find_live_conflicts(
    plan: str, kind: TouchKind, groups: frozenset[FileGroupId], live: Mapping[Instant, Touched]
) -> tuple[Conflicting, ...]:
    """The live writes that have started upon file groups that a plan would take from under them."""
    return tuple(
        Conflicting(
            instant.requested, instant.action, key.partition, key.file_id, ConflictKind.UNDER_WAY
        )
        for instant, touched in live.items()
        for key in sorted(groups & endangering(plan, kind, instant.requested, touched))
    )


def overlapping_plans(
    groups: frozenset[FileGroupId], active: ActiveTimeline, *, but: str = ""
) -> tuple[str, ...]:
    """The pending plans, other than one, that hold some of the file groups."""
    return tuple(
        instant.requested
        for instant in active.pending(PLANNED)
        if instant.requested != but and groups & planned_by(active, instant).keys
    )


def plan_conflict(plan: str, action: Action, found: tuple[Conflicting, ...]) -> Conflict:
    """The error of a plan that has to give way."""
    first = found[0]
    other = f"{first.action.value} {first.instant}"
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return Conflict(
        "plan_conflict",
        what=(
            f"The {action.value} {plan} conflicts with the {other} at file group "
            f"{first.file_id} of partition {first.partition!r}{more}."
        ),
        why=f"The {other} {first.kind.value}, and the plan lacks its rows.",
        now=(
            "The rows are unchanged. Schedule a new plan; one that is not cancellable "
            "keeps writes out."
        ),
        instant=first.instant,
        action=first.action.value,
        partition=first.partition,
        file_id=first.file_id,
        conflicts=len(found),
    )


def endangering(plan: str, kind: TouchKind, other: str, touched: Touched) -> frozenset[FileGroupId]:
    """The file groups in which a plan would undo what another instant has written.

    A log that completes after a compaction was planned belongs to the new slice. Behind the result
    of a log compaction come the logs of later instants, whenever these complete.
    """
    if kind is TouchKind.COMPACTION or (kind is TouchKind.LOG_COMPACTION and other > plan):
        return touched.keys - touched.appended
    return touched.keys


def _overlaps(
    active: ActiveTimeline,
    instant: Instant,
    plan: str,
    kind: TouchKind,
    groups: frozenset[FileGroupId],
) -> Iterator[Conflicting]:
    touched = endangering(plan, kind, instant.requested, touched_by(active, instant))
    files = active.files_of(instant)
    action = files.started_as if files else instant.action
    for key in sorted(groups & touched):
        yield Conflicting(
            instant.requested, action, key.partition, key.file_id, ConflictKind.COMPLETED
        )
