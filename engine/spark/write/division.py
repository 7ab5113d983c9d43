"""Division: the file groups of a write in tasks of about the same work."""

import heapq
from collections.abc import Sequence

from lakewarden.engine.write.distributed_rows import DistributedWrite, GroupOrder, group_order
from lakewarden.engine.write.files.group_work import GroupWork

TASKS_PER_CORE = 2
# A task holds the rows of its groups in memory, so that it gets no more groups than make this much.
TASK_BYTES = 128 << 20


def divided(
    groups: Sequence[GroupWork], job: DistributedWrite, cores: int
) -> list[dict[int, GroupOrder]]:
    """The groups in tasks of about the same work, the largest first, each to the least."""
    costs = [job.limits.bytes_of(work.row_count) + _old_bytes(work) for work in groups]
    wanted = max(cores * TASKS_PER_CORE, sum(costs) // TASK_BYTES)
    tasks: list[dict[int, GroupOrder]] = [{} for _ in range(min(wanted, len(groups)))]
    loads = [(0, number) for number in range(len(tasks))]
    for at in sorted(range(len(groups)), key=lambda at: (-costs[at], at)):
        load, number = loads[0]
        tasks[number][at] = group_order(groups[at], at)
        heapq.heapreplace(loads, (load + costs[at], number))
    return tasks


def _old_bytes(work: GroupWork) -> int:
    return work.slice.size_bytes if work.slice else 0
