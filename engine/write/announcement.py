"""The announcement of a write: which file groups it is about to touch, in its inflight file.

The write knows them before it makes its first file. Cancellable plans look at announcements before
they commit, and give way. Java reads the same in the inflight files of its own writes: each file
group with the instant of its base file and the number of updates.
"""

from lakewarden.engine.conflicts.plan_conflicts import overlapping_plans
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.instant_metadata import commit as commit_payload
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, Operation, WriteStat
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.attempts.publish import to_inflight
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.fencing import fence_plans
from lakewarden.engine.write.files.spec import WriteSpec
from lakewarden.engine.write.files.write_groups import goes_to_log
from lakewarden.engine.write.plan import WritePlan


def announce(
    context: Context,
    snapshot: Snapshot,
    attempt: Attempt,
    plan: WritePlan,
    spec: WriteSpec,
    operation: Operation,
) -> None:
    """Steps of `write`: inflight, fence-plans. From here on cancellable plans give way."""
    metadata = announcement(plan, spec, operation)
    to_inflight(context, attempt, commit_payload.encode(metadata), is_just_published=True)
    groups = frozenset(work.key for work in plan.groups if work.slice is not None)
    replaced = frozenset(slice_.key for slice_ in plan.replaced)
    rivals = overlapping_plans(groups | replaced, snapshot.timeline.active)
    fence_plans(context, rivals, attempt.instant)


def announcement(plan: WritePlan, spec: WriteSpec, operation: Operation) -> CommitMetadata:
    """The existing file groups of a plan; new ones are nobody else's, and are not named."""
    stats: dict[str, list[WriteStat]] = {}
    for work in plan.groups:
        if work.slice is not None:
            is_log = goes_to_log(spec, has_slice=True, has_inserts=bool(len(work.inserts)))
            stat = WriteStat(
                file_id=work.key.file_id,
                prev_commit=work.slice.base_instant,
                num_update_writes=len(work.updates) + len(work.departures),
                num_inserts=len(work.inserts),
                log_files=() if is_log else None,
            )
            stats.setdefault(work.key.partition, []).append(stat)
    for slice_ in plan.replaced:
        stats.setdefault(slice_.partition, []).append(_replaced(slice_))
    return CommitMetadata(
        partition_to_write_stats={name: tuple(stats[name]) for name in sorted(stats)},
        operation_type=operation,
    )


def _replaced(slice_: FileSlice) -> WriteStat:
    return WriteStat(file_id=slice_.file_id, prev_commit=slice_.base_instant)
