"""Arranging: the rows of a write in the order of the file groups that take them.

One copy of the rows then serves all groups, each of which is a stretch of it.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lakewarden.engine.write.files.group_work import GroupWork
from lakewarden.engine.write.plan import WritePlan

Places = npt.NDArray[np.int64]


def arranged(plan: WritePlan) -> WritePlan:
    """The same plan over rows that stand group by group."""
    order = [part for group in plan.groups for part in _parts(group)]
    if not order:
        return plan
    groups, start = [], 0
    for group in plan.groups:
        moved = []
        for part in _parts(group):
            moved.append(np.arange(start, start + len(part)))
            start += len(part)
        groups.append(GroupWork(group.key, group.slice, *moved))
    return replace(plan, rows=plan.rows.take(np.concatenate(order)), groups=tuple(groups))


def _parts(group: GroupWork) -> tuple[Places, Places, Places]:
    return group.updates, group.inserts, group.departures
