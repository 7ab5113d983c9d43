"""Held file groups: those that a pending plan is going to rewrite, which no other plan may take."""

from collections.abc import Mapping

from lakewarden.engine.locks.touched import PLANNED, planned_by
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.view.slices import SliceKey


def held_groups(moment: Snapshot) -> Mapping[SliceKey, str]:
    """The file groups in pending plans of all services, and the oldest plan that has each.

    Plans that make room for the one that is being made hold nothing.
    """
    active = moment.timeline.active
    held: dict[SliceKey, str] = {}
    for instant in active.pending(PLANNED):
        if instant.requested not in moment.overlooked:
            for key in planned_by(active, instant).keys:
                held.setdefault(key, instant.requested)
    return held
