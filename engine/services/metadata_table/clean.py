"""Cleaning the metadata table: slices that compactions have replaced.

It retains its past by the rules of the table's own clean. The metadata table has no time travel,
but a reader that has started on a slice has to be able to finish it.
"""

from dataclasses import dataclass
from functools import partial

from lakewarden.engine.file_groups.slices import file_groups, load_visibility
from lakewarden.engine.formats.instant_metadata import clean
from lakewarden.engine.formats.instant_metadata.clean import (
    CleanFile,
    CleanMetadata,
    CleanPartition,
    CleanPlan,
    CleanPolicy,
    RetainedInstant,
)
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.metadata.reading.table import MetadataTable
from lakewarden.engine.metadata.writing.instants import (
    complete,
    completed_elsewhere,
    publish,
    remove,
)
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.services.retention.clean_plan import Cut, OldFile, PartitionView, select
from lakewarden.engine.services.retention.horizon import Horizon, Writes, find_horizon
from lakewarden.engine.services.retention.settings import CleanRetention
from lakewarden.engine.storage.side_by_side import together
from lakewarden.engine.timeline.instants.instant import Action, InstantFiles
from lakewarden.engine.timeline.next_time import TimeSource

# Hudi leaves readers so many instants after a compaction to finish with what was before.
INSTANTS_AFTER_COMPACTION = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataCleanDraft:
    """What a clean would delete, or why nothing."""

    policy: CleanPolicy
    horizon: Horizon
    files: tuple[OldFile, ...] = ()
    why: str

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


def draft_metadata_clean(
    state: MetadataTable, retention: CleanRetention, *, now_ms: int
) -> MetadataCleanDraft:
    """What a clean of the metadata table would delete now; writes nothing."""
    active = state.timeline.active
    by_versions = retention.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS
    horizon = Horizon(why=f"{retention.versions} slices of each file group are retained.")
    if not by_versions:
        pending = active.pending((Action.COMPACTION, Action.DELTA_COMMIT))
        writes = Writes(completed=active.completed(), pending=pending)
        horizon = find_horizon(writes, retention, now_ms=now_ms, zone=active.layout.zone)
    earliest = None if horizon.instant is None else horizon.instant.requested
    fresh = _is_fresh(state)
    if fresh or (earliest is None and not by_versions):
        why = fresh or horizon.why
        return MetadataCleanDraft(policy=retention.policy, horizon=horizon, why=why)
    cut = Cut(horizon=earliest, retention=retention)
    files = select(_views(state), cut).files
    return MetadataCleanDraft(
        policy=retention.policy, horizon=horizon, files=files, why=horizon.why
    )


def clean_metadata(
    state: MetadataTable, draft: MetadataCleanDraft, times: TimeSource, ports: Ports
) -> str:
    """Execute a draft; the answer is the clean's instant.

    Steps of `metadata-clean`: plan, compare, files, complete. After a crash the next call
    executes the plan that is there.
    """
    instant = times.next()
    plan = _plan(state, draft)
    publish(state, instant, Action.CLEAN, clean.encode_plan(plan))
    if not _execute(state, instant, plan, ports):
        raise completed_elsewhere(instant)
    return instant


def finish_cleans(state: MetadataTable, ports: Ports) -> tuple[str, ...]:
    """Execute the cleans that a dead writer has left, and remove torn ones."""
    done = []
    for files in state.timeline.active.files:
        if files.started_as is not Action.CLEAN or files.completed is not None:
            continue
        plan = _published(state, files)
        if plan is None:
            remove(state, files)
            continue
        if _execute(state, files.instant.requested, plan, ports):
            done.append(files.instant.requested)
    return tuple(done)


def _published(state: MetadataTable, files: InstantFiles) -> CleanPlan | None:
    if files.requested is None:
        return None
    path = files.requested.entry.path
    try:
        return clean.decode_plan(state.storage.read(path), path)
    except CorruptTable:
        return None


def _is_fresh(state: MetadataTable) -> str | None:
    """Why it is too early after the last compaction, or that there was none."""
    active = state.timeline.active
    last = max((one.requested for one in active.completed((Action.COMMIT,))), default=None)
    if last is None:
        return "It was never compacted, so no slice is old."
    later = [one for one in active.instants if one.is_completed and one.requested > last]
    if len(later) >= INSTANTS_AFTER_COMPACTION:
        return None
    return f"It was compacted at {last}, and readers may still use the older slices."


def _views(state: MetadataTable) -> list[PartitionView]:
    visibility = load_visibility(state.timeline.active, state.validity, names_decide=False)
    views, names_there = [], state.partitions()
    listings = together(state.storage, [partial(state.files, name) for name in names_there])
    for name, files in zip(names_there, listings, strict=True):
        groups = file_groups(name, files, visibility)
        names = frozenset(file.name for file in files)
        views.append(PartitionView(partition=name, groups=groups, names=names))
    return views


def _plan(state: MetadataTable, draft: MetadataCleanDraft) -> CleanPlan:
    files: dict[str, tuple[CleanFile, ...]] = {}
    for file in draft.files:
        named = CleanFile(file_path=state.storage.uri(file.path))
        files[file.partition] = (*files.get(file.partition, ()), named)
    retained = draft.horizon.instant
    return CleanPlan(
        earliest_instant_to_retain=None
        if retained is None
        else RetainedInstant(
            timestamp=retained.requested,
            action=retained.action.value,
            state=retained.state.name,
        ),
        last_completed_commit_timestamp=max(
            (one.requested for one in state.timeline.active.completed()), default=""
        ),
        policy=draft.policy,
        file_paths_to_be_deleted_per_partition=files,
    )


def _execute(state: MetadataTable, instant: str, plan: CleanPlan, ports: Ports) -> bool:
    """Delete what a plan names; False where something of it is needed again."""
    now = state.again()
    started = now.started(instant, Action.CLEAN)
    if started is None or started.completed is not None:
        raise completed_elsewhere(instant)
    began_ms = ports.clock.now_ms()
    # The table may have been moved since; partition and name stay the same.
    names = {
        partition: tuple((file.file_path or "").rpartition("/")[2] for file in files)
        for partition, files in plan.file_paths_to_be_deleted_per_partition.items()
    }
    if any(not _needed(now, partition).isdisjoint(own) for partition, own in names.items()):
        remove(now, started)
        return False
    for partition, own in names.items():
        for name in own:
            state.storage.delete(f"{partition}/{name}")
    retained = plan.earliest_instant_to_retain
    metadata = CleanMetadata(
        start_clean_time=instant,
        time_taken_in_millis=ports.clock.now_ms() - began_ms,
        total_files_deleted=sum(map(len, names.values())),
        earliest_commit_to_retain="" if retained is None else retained.timestamp,
        last_completed_commit_timestamp=plan.last_completed_commit_timestamp,
        partition_metadata={
            partition: CleanPartition(
                partition_path=partition,
                policy=plan.policy,
                delete_path_patterns=own,
                success_delete_files=own,
            )
            for partition, own in names.items()
        },
    )
    complete(state, instant, Action.CLEAN, clean.encode(metadata))
    return True


def _needed(now: MetadataTable, partition: str) -> frozenset[str]:
    """The files that readers read: a compaction that has put others in their place may be gone."""
    visibility = load_visibility(now.timeline.active, now.validity, names_decide=False)
    slices = (
        group.latest_merged() for group in file_groups(partition, now.files(partition), visibility)
    )
    return frozenset(
        file.name
        for slice_ in slices
        for file in (slice_.base_file, *slice_.log_files)
        if file is not None
    )
