"""The point to go back to: which instants stand between it and now, and which files it needs.

The table as it was when an instant completed is what is left without all that completed later. A
compaction counts by when it was planned, as in Java: the logs written since are on top of it.
"""

from collections.abc import Mapping

from lakewarden.engine.file_groups.file_names import DataFile
from lakewarden.engine.file_groups.slices import Visibility
from lakewarden.engine.file_groups.visibility import load_visibility
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import TableType
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.instants.instant import Action, Instant
from lakewarden.engine.timeline.timeline_without import Without
from lakewarden.engine.transaction.state.plan_scope import INGESTION
from lakewarden.engine.transaction.state.service import TABLE_SERVICES


def undone_by(snapshot: Snapshot, target: Instant) -> tuple[InstantFiles, ...]:
    """The instants that a restore to a completed write takes back, newest first.

    What has not completed is newer than all that has.
    """
    is_mor = snapshot.config.table_type is TableType.MERGE_ON_READ
    found = [
        files
        for files in snapshot.timeline.active.files
        if files.started_as in INGESTION | TABLE_SERVICES
        and _is_later(files, target, is_mor=is_mor)
    ]
    pending = [files for files in found if files.completed is None]
    completed = [files for files in found if files.completed is not None]
    pending.sort(key=lambda files: files.instant.requested, reverse=True)
    completed.sort(key=lambda files: files.instant.completed or "", reverse=True)
    return (*pending, *completed)


def _is_later(files: InstantFiles, target: Instant, *, is_mor: bool) -> bool:
    instant = files.instant
    if instant.key == target.key:
        return False
    if instant.completed is None:
        # A plan from before is still a good one; a write is not going to be.
        return instant.requested > target.requested or files.started_as in INGESTION
    if is_mor and instant.action is Action.COMMIT:
        return instant.requested > target.requested
    return instant.completed > (target.completed or "")


def visibility_without(snapshot: Snapshot, gone: frozenset[str]) -> Visibility:
    """How the table is seen once some instants are no more."""
    active = snapshot.timeline.active
    completions = Without(snapshot.timeline, gone)
    whole = load_visibility(active, completions, names_decide=False)
    pending = {key: plan for key, plan in whole.pending_compactions.items() if plan not in gone}
    return Visibility(completions=completions, replaced=whole.replaced, pending_compactions=pending)


def all_files(state: Snapshot) -> Mapping[str, tuple[DataFile, ...]]:
    """All data files of the table that are known."""
    return state.source(use_metadata=True).files()
