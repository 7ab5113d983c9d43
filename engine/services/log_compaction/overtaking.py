"""What a log compaction gives way to at its commit, besides what stops any plan.

A compaction that was planned since then takes the same logs into a new base file. The result of the
log compaction would lie on top of that, and its rows over newer ones.
"""

from lakewarden.engine.conflicts.conflicts import Conflicting, ConflictKind
from lakewarden.engine.conflicts.plan_conflicts import plan_conflict
from lakewarden.engine.conflicts.touched_groups import planned_by
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action


def assert_no_compaction(snapshot: Snapshot, instant: str, groups: frozenset[FileGroupId]) -> None:
    """Raise where a compaction of the same file groups is pending.

    Our planners leave such file groups alone, but Java's compactions are planned all the same.
    """
    active = snapshot.timeline.active
    found = tuple(
        Conflicting(other.requested, other.action, key.partition, key.file_id, ConflictKind.PLANNED)
        for other in active.pending((Action.COMPACTION,))
        for key in sorted(groups & planned_by(active, other).keys)
    )
    if found:
        raise plan_conflict(instant, Action.LOG_COMPACTION, found)
