"""Pruning: a plan that waits, made anew without some of its files.

A published plan is never rewritten: a process that has read it may be executing it. It is
cancelled, and the rest becomes a plan of its own under the same lock. A crash in between leaves a
cancelled plan, whose partitions come back in the next one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakewarden.engine.conflicts.conflicts import find_plan_conflicts, plan_conflict
from lakewarden.engine.conflicts.touched_groups import TouchKind
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata.replace import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    RequestedReplace,
    decode_plan,
    encode_plan,
)
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.read.query.removed_files import broken_among
from lakewarden.engine.services.planning.schedule import remove_cancelled
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.paths import joined
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.instants.state import InstantState
from lakewarden.engine.transaction.attempts.publish import publish_in
from lakewarden.engine.transaction.cancel.cancel import Ending, cancel_in
from lakewarden.engine.transaction.state.context import (
    Context,
    load_for_writing,
    pending_ledgers,
    reload_under_lock,
)
from lakewarden.engine.transaction.state.live_attempt import pending_state
from lakewarden.engine.transaction.state.rollback_plans import pending_rollbacks


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedFile:
    """A base file that is to go from a plan."""

    path: str
    is_planned: bool
    # What is wrong with it, where that is why it goes.
    broken: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Pruned(Shown):
    """A plan, and what became of it."""

    instant: str
    files: tuple[PrunedFile, ...]
    # None where nothing is left of the plan, or nothing was changed.
    replaced_by: str | None = None


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A plan that waits, as it was read."""

    requested: RequestedReplace

    @property
    def plan(self) -> ClusteringPlan:
        return self.requested.clustering_plan or ClusteringPlan()

    @property
    def slices(self) -> tuple[ClusteringSlice, ...]:
        return tuple(one for group in self.plan.input_groups for one in group.slices)

    def without(self, paths: frozenset[str]) -> "_Waiting":
        """The rest of it; the partitions of what goes are named as skipped."""
        kept = (_without(group, paths) for group in self.plan.input_groups)
        left = {one.partition_path or "" for one in self.slices if one.data_file_path in paths}
        rest = replace(
            self.plan,
            input_groups=tuple(group for group in kept if group.slices),
            missing_schedule_partitions=tuple(
                sorted({*self.plan.missing_schedule_partitions, *left})
            ),
        )
        return _Waiting(replace(self.requested, clustering_plan=rest))

    @property
    def groups(self) -> frozenset[FileGroupId]:
        return frozenset(
            FileGroupId(one.partition_path or "", one.file_id or "") for one in self.slices
        )


def prune(
    context: Context,
    instant: str,
    names: Sequence[str] | None = None,
    *,
    allow_empty: bool = False,
    dry_run: bool = False,
) -> Pruned:
    """Take files out of a plan that no attempt has started: those named, or the unreadable ones.

    Steps of `prune`: lock, reload, holds, cancel, publish, unlock, abort. The plan has to wait
    still, and nothing may have been written to the rest of it since it was published.
    """
    waiting = _waiting(context, load_for_writing(context), instant)
    files = _broken(context, waiting) if names is None else _named(waiting, names)
    going = frozenset(file.path for file in files if file.is_planned)
    rest = waiting.without(going)
    if going and not rest.slices and not allow_empty:
        raise _nothing_left(instant)
    if dry_run or not going:
        return Pruned(instant=instant, files=files)
    replaced_by = _replace(context, instant, rest, f"{len(going)} of its files are removed")
    remove_cancelled(context, (instant,))
    return Pruned(instant=instant, files=files, replaced_by=replaced_by)


def _replace(context: Context, instant: str, rest: _Waiting, reason: str) -> str | None:
    """Steps `prune.lock` to `prune.unlock`; the instant of the rest, if there is any."""
    with context.lock.hold() as held:
        now = reload_under_lock(context)
        _waiting(context, now, instant)
        conflicts = find_plan_conflicts(
            instant, TouchKind.CLUSTERING, rest.groups, now.timeline.active
        )
        if conflicts:
            raise plan_conflict(instant, Action.CLUSTERING, conflicts)
        held.assert_held()
        ended = cancel_in(context, now, instant, reason, force=True)
        assert ended.outcome is Ending.CANCELLED
        if not rest.slices:
            return None
        content = encode_plan(rest.requested)
        return publish_in(context, held, now, Action.CLUSTERING, content, claims=False).instant


def _waiting(context: Context, snapshot: Snapshot, instant: str) -> _Waiting:
    """A plan that no attempt has started."""
    files = snapshot.pending(instant)
    if files is None or files.requested is None or files.started_as is not Action.CLUSTERING:
        raise InvalidRequest(
            "unknown_plan",
            what=f"The timeline has no pending clustering {instant}.",
            why="It may be complete or rolled back, or was never published.",
            now="CALL show_plans lists what is pending.",
            instant=instant,
        )
    seen = replace(snapshot, ledgers=pending_ledgers(context, snapshot))
    rollbacks = pending_rollbacks(snapshot.timeline.active)
    state = pending_state(context, seen, rollbacks, files)
    if state is not InstantState.REQUESTED:
        raise Conflict(
            "plan_begun",
            what=f"The clustering {instant} has already started ({state.value}).",
            why="A worker that has started a plan follows it as it was.",
            now="Wait until it ends, or CALL cancel_plan and schedule a new one.",
            instant=instant,
        )
    content = snapshot.timeline.active.read(files.requested.instant)
    return _Waiting(decode_plan(content, files.requested.entry.path))


def _named(waiting: _Waiting, names: Sequence[str]) -> tuple[PrunedFile, ...]:
    """The files of these names or addresses; names that the plan lacks are reported, too."""
    planned = [one.data_file_path for one in waiting.slices if one.data_file_path]
    found = []
    for name in dict.fromkeys(names):
        path = next((one for one in planned if one == name or one.endswith(f"/{name}")), None)
        found.append(PrunedFile(path=path or name, is_planned=path is not None))
    return tuple(found)


def _broken(context: Context, waiting: _Waiting) -> tuple[PrunedFile, ...]:
    """The files of a plan that are no Parquet files."""
    addresses = {
        _relative(one): one.data_file_path
        for one in waiting.slices
        if one.data_file_path and one.data_file_path.endswith(".parquet")
    }
    broken = broken_among(context.storage, context.ports.executor, sorted(addresses))
    return tuple(
        PrunedFile(path=addresses[one.path], is_planned=True, broken=one.reason) for one in broken
    )


def _relative(slice_: ClusteringSlice) -> str:
    name = (slice_.data_file_path or "").rpartition("/")[2]
    return joined(slice_.partition_path or "", name)


def _without(group: ClusteringGroup, paths: frozenset[str]) -> ClusteringGroup:
    """A group without some files; what it was reckoned to read is then an upper bound."""
    kept = tuple(one for one in group.slices if one.data_file_path not in paths)
    return replace(group, slices=kept)


def _nothing_left(instant: str) -> InvalidRequest:
    return InvalidRequest(
        "empty_plan",
        what=f"The clustering {instant} would be left without files.",
        why="The call removes all files of its plan.",
        now="To do so, set allow_empty_plan => true, or CALL cancel_plan.",
        instant=instant,
    )
