"""Making files here: the tasks of a write on the threads of this process."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.markers import MarkedFile, MarkerKind, list_markers
from lakewarden.engine.write.files.spec import WriteSpec, WrittenFile, group_task
from lakewarden.engine.write.files.write_groups import planned_files, write_groups
from lakewarden.engine.write.plan import WritePlan, arranged
from lakewarden.engine.write.settings import MERGED_TOGETHER_BYTES

# A file of fewer bytes is made sooner than another thread has taken up a part of it.
WORTH_A_THREAD_BYTES = 1 << 20


def local_files(
    context: Context, spec: WriteSpec, plan: WritePlan, attempt: Attempt
) -> Iterator[WrittenFile]:
    """The files of a plan, made group by group, or several groups at once where memory allows."""
    workers = context.ports.executor.workers
    is_large = _merged_bytes(plan) > context.settings[MERGED_TOGETHER_BYTES]
    if not is_large:
        # One after the other, groups need a copy of their own rows only, and only for a while.
        plan = arranged(plan)
    at_once = 1 if is_large else min(workers, max(len(plan.groups), 1))
    threads = 1 if _touched_bytes(plan) < WORTH_A_THREAD_BYTES else max(workers // at_once, 1)
    spec = replace(spec, threads=threads)
    if spec.has_lists and plan.groups:
        list_markers(context.storage, spec.instant, 0, _planned_files(spec, plan))

    def write(number: int) -> WrittenFile | None:
        attempt.assert_mine()
        # What finding the keys, or the file before, has taken goes back to the system.
        pa.default_memory_pool().release_unused()
        task = group_task(plan.groups[number], plan.rows, number)
        return write_groups(context.storage, spec, task)

    numbers = range(len(plan.groups))
    files = map(write, numbers) if is_large else context.ports.executor.map(write, numbers)
    for done, file in enumerate(files, start=1):
        attempt.tell("write files", done=done, total=len(numbers))
        if file is not None:
            yield file


def listed_paths(spec: WriteSpec, plan: WritePlan) -> frozenset[str] | None:
    """The paths of all files that `local_files` announces; None where it puts no list."""
    if not spec.has_lists:
        return None
    return frozenset(file.path for file, _ in _planned_files(spec, plan))


def _planned_files(spec: WriteSpec, plan: WritePlan) -> Iterator[tuple[MarkedFile, MarkerKind]]:
    for number, work in enumerate(plan.groups):
        has_inserts = bool(len(work.inserts))
        yield from planned_files(spec, work.key, work.slice, number, has_inserts=has_inserts)


def _touched_bytes(plan: WritePlan) -> int:
    """Bytes of the rows, and of what is there of the file groups that they go into."""
    there = sum(group.slice.size_bytes for group in plan.groups if group.slice is not None)
    return int(plan.rows.rows.nbytes) + there


def _merged_bytes(plan: WritePlan) -> int:
    """Bytes of the rows that meet existing ones: merging takes several times as much again."""
    merged = sum(group.row_count for group in plan.groups if group.slice is not None)
    return int(plan.rows.rows.nbytes) * merged // max(len(plan.rows), 1)
