"""Held file groups: those that a pending plan is going to rewrite, which no other plan may take."""

from collections.abc import Mapping

from lakewarden.engine.conflicts.touched_groups import PLANNED, planned_by
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.snapshot import Snapshot


def held_groups(snapshot: Snapshot) -> Mapping[FileGroupId, str]:
    """The file groups in pending plans of all services, and the oldest plan that has each.

    Plans that make room for the one that is being made hold nothing.
    """
    active = snapshot.timeline.active
    held: dict[FileGroupId, str] = {}
    for instant in active.pending(PLANNED):
        if instant.requested not in snapshot.preemptible:
            for key in planned_by(active, instant).keys:
                held.setdefault(key, instant.requested)
    return held
