"""Visibility: what the timeline says about file groups, read once for a view of the table."""

from lakewarden.engine.formats.payloads import compaction, replace
from lakewarden.engine.timeline.active import ActiveTimeline
from lakewarden.engine.timeline.instant import Action, State
from lakewarden.engine.view.slices import Completions, SliceKey, Visibility


def load_visibility(
    active: ActiveTimeline,
    completions: Completions,
    *,
    names_decide: bool,
    as_of: str | None = None,
) -> Visibility:
    """Which instants count, which file groups were replaced, which await compaction."""
    return Visibility(
        completions=completions,
        names_decide=names_decide,
        as_of=as_of,
        replaced=replaced_groups(active, completions),
        pending_compactions=pending_compactions(active),
    )


def replaced_groups(active: ActiveTimeline, completions: Completions) -> dict[SliceKey, str]:
    """The file groups that a completed replace commit put others in the place of, and when.

    The archiver keeps a replace commit until its groups are cleaned, so the active ones are all.
    """
    groups: dict[SliceKey, str] = {}
    for instant in active.completed((Action.REPLACE_COMMIT,)):
        if not completions.is_completed(instant.requested):
            continue
        metadata = replace.decode(active.read(instant), active.path(instant))
        for partition, file_ids in metadata.partition_to_replace_file_ids.items():
            for file_id in file_ids:
                groups[SliceKey(partition, file_id)] = instant.requested
    return groups


def pending_compactions(active: ActiveTimeline) -> dict[SliceKey, str]:
    """The file groups in pending compaction plans, and the instants of the plans."""
    groups: dict[SliceKey, str] = {}
    for instant in active.pending((Action.COMPACTION,)):
        files = active.files_of(instant)
        plan_file = files and files.in_state(State.REQUESTED)
        if not plan_file or plan_file.entry.size_bytes == 0:
            # An empty plan was never published; nobody can have acted on it.
            continue
        path = plan_file.entry.path
        plan = compaction.decode_plan(active.read(plan_file.instant), path)
        for operation in plan.operations:
            key = SliceKey(operation.partition_path or "", operation.file_id or "")
            groups[key] = instant.requested
    return groups
