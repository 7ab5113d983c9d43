"""Visibility: what the timeline says about file groups, read once for a view of the table."""

from collections.abc import Iterator

from lakewarden.engine.file_groups.slices import Completions, FileGroupId, Visibility
from lakewarden.engine.formats.instant_metadata import compaction
from lakewarden.engine.formats.instant_metadata.codec import TORN_PLAN
from lakewarden.engine.formats.instant_metadata.replace import decode as decode_replace
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.timeline.active import ActiveTimeline, StateFile
from lakewarden.engine.timeline.instants.instant import Action, State


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


def replaced_groups(active: ActiveTimeline, completions: Completions) -> dict[FileGroupId, str]:
    """The file groups that a completed replace commit put others in the place of, and when.

    The archiver keeps a replace commit until its groups are cleaned, so the active ones are all.
    """
    groups: dict[FileGroupId, str] = {}
    for instant in active.completed((Action.REPLACE_COMMIT,)):
        if not completions.is_completed(instant.requested):
            continue
        keys = replaced_by(active.read(instant), active.path(instant))
        groups |= dict.fromkeys(keys, instant.requested)
    return groups


def replaced_by(content: bytes, path: str) -> Iterator[FileGroupId]:
    """The file groups that a replace commit has put others in the place of."""
    for partition, file_ids in decode_replace(content, path).partition_to_replace_file_ids.items():
        for file_id in file_ids:
            yield FileGroupId(partition, file_id)


def pending_compactions(active: ActiveTimeline) -> dict[FileGroupId, str]:
    """The file groups in pending compaction plans, and the instants of the plans."""
    groups: dict[FileGroupId, str] = {}
    for instant in active.pending((Action.COMPACTION,)):
        files = active.files_of(instant)
        plan_file = files and files.in_state(State.REQUESTED)
        plan = _plan(active, plan_file) if plan_file else None
        for operation in plan.operations if plan else ():
            key = FileGroupId(operation.partition_path or "", operation.file_id or "")
            groups[key] = instant.requested
    return groups


def _plan(active: ActiveTimeline, file: StateFile) -> compaction.CompactionPlan | None:
    """The plan in a file; an empty or torn one was never published, so no writer follows it."""
    try:
        return compaction.decode_plan(active.read(file.instant), file.entry.path)
    except CorruptTable as error:
        if error.code != TORN_PLAN:
            raise
        return None
