"""Held file groups: those that a pending plan is going to rewrite, which no other plan may take."""

from collections.abc import Mapping

from lakewarden.engine.locks.touched import PLANNED, planned_by
from lakewarden.engine.timeline.active import ActiveTimeline
from lakewarden.engine.view.slices import SliceKey


def held_groups(active: ActiveTimeline) -> Mapping[SliceKey, str]:
    """The file groups in pending plans of all services, and the oldest plan that has each."""
    held: dict[SliceKey, str] = {}
    for instant in active.pending(PLANNED):
        for key in planned_by(active, instant).keys:
            held.setdefault(key, instant.requested)
    return held
