"""Compaction of the metadata table: the logs of all file groups folded into new base files.

A write asks for it once enough deltacommits or bytes have come together, or logs would grow without
end and Java could not archive the timeline. It is planned and completed under the table's lock, and
folded without it. It waits while some instant is completed here and still pending on the data
table: what base files hold cannot be rolled back any more.

Upkeep: what a write does for the metadata table before it tells its own change.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from lakewarden.engine.file_groups.file_names import BaseFile
from lakewarden.engine.file_groups.listing import RecordedSizes, Sizes
from lakewarden.engine.file_groups.planned_slices import operation_of, recorded_logs, slice_of
from lakewarden.engine.file_groups.slices import file_groups, load_visibility
from lakewarden.engine.formats.instant_metadata import commit, compaction
from lakewarden.engine.formats.instant_metadata.commit import Operation, RuntimeStats, WriteStat
from lakewarden.engine.formats.instant_metadata.compaction import (
    CompactionOperation,
    CompactionPlan,
)
from lakewarden.engine.kernel.errors import Conflict, CorruptTable, corrupt
from lakewarden.engine.kernel.settings import Setting, Settings, whole_number
from lakewarden.engine.metadata.encoding.records import base_file, base_name
from lakewarden.engine.metadata.entries.content import folded
from lakewarden.engine.metadata.reading.partition import ALL, MetadataFileGroup
from lakewarden.engine.metadata.reading.table import MetadataTable
from lakewarden.engine.metadata.writing.builds import compacted_partitions
from lakewarden.engine.metadata.writing.coverage import covers
from lakewarden.engine.metadata.writing.deltacommit import (
    Weight,
    last_compaction,
    weight_of,
    withdraw_strays,
)
from lakewarden.engine.metadata.writing.instants import (
    commit_content,
    complete,
    completed_elsewhere,
    publish,
    remove,
)
from lakewarden.engine.metadata.writing.log_compact import (
    LOG_BLOCKS_MIN,
    LOG_COMPACTION_ENABLED,
    compact_logs,
    draft_log_compaction,
    withdraw_log_compactions,
)
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.side_by_side import together
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.timeline.instants.instant import (
    Action,
    Instant,
    InstantFiles,
    State,
    epoch_ms,
)
from lakewarden.engine.timeline.next_time import TimeSource

DELTACOMMITS_MAX = Setting(
    "hoodie.metadata.compact.max.delta.commits",
    10,
    whole_number,
    "After so many deltacommits the metadata table is compacted.",
)
DELTACOMMITS_MAX_WHEN_PENDING = Setting(
    "hoodie.metadata.max.deltacommits.when_pending",
    1000,
    whole_number,
    "After so many deltacommits writes are refused if the metadata table cannot be compacted",
)


# Logs are read whole: so many bytes of them are too many, however few they are.
LOG_BYTES_MAX = 32 * 1024 * 1024
# While logs are this small a share of the base files, it may take as many times the deltacommits.
LOG_SHARE, PATIENCE = 0.1, 3


@dataclass(frozen=True, slots=True)
class _FoldTask:
    operation: CompactionOperation
    instant: str
    token: str
    created_ms: int
    # By the names of the logs.
    recorded: Sizes

    @property
    def path(self) -> str:
        operation = self.operation
        name = base_name(operation.file_id or "", self.instant, self.token)
        return f"{operation.partition_path or ''}/{name}"


@dataclass(frozen=True, slots=True)
class Planned:
    """A compaction that is pending, with its plan."""

    instant: str
    plan: CompactionPlan


def plan_if_due(
    state: MetadataTable,
    config: TableConfig,
    times: TimeSource,
    deltacommits_max: int,
    known: Weight | None,
) -> bool:
    """Plan a compaction if it is time, by what the caller knows of the logs' weight if it still
    holds; whether there is a plan now."""
    if pending_compactions(state) or state.uncertain():
        return False
    since = deltacommits_since(state)
    if known is not None and known.compacted != last_compaction(state):
        known = None
    if since < deltacommits_max * PATIENCE:
        if known is None and since < deltacommits_max:
            return False
        weight = known or _measured(state)
        least = 0 if since >= deltacommits_max else LOG_BYTES_MAX
        if weight.logs < max(least, weight.bases * LOG_SHARE):
            return False
    return publish_compaction(state, config, times) is not None


def _measured(state: MetadataTable) -> Weight:
    listings = [partial(state.files, name) for name in compacted_partitions(state)]
    files = together(state.storage, listings)
    return weight_of(state, (file for own in files for file in own))


def publish_compaction(
    state: MetadataTable, config: TableConfig, times: TimeSource
) -> Planned | None:
    """Step `metadata-compaction.plan`: all slices that have logs; None without any."""
    plan = draft_compaction(state, config)
    if not plan.operations:
        return None
    instant = times.next()
    publish(state, instant, Action.COMPACTION, compaction.encode_plan(plan))
    return Planned(instant, plan)


def left_compaction(state: MetadataTable) -> Planned | None:
    """The pending compaction; a plan that was never published whole is removed.

    So is one that does not hold any more. The caller has the lock.
    """
    for files in pending_compactions(state):
        plan = _plan(state, files)
        if plan is None:
            remove(state, files)
        elif not covers(state.again(), files.instant.requested, plan):
            _withdraw(state, files.instant.requested)
        else:
            return Planned(files.instant.requested, plan)
    return None


def fold(
    state: MetadataTable, planned: Planned, executor: Executor, check: Callable[[], None]
) -> tuple[WriteStat, ...]:
    """Step `metadata-compaction.fold`: the new base files; `check` raises once they are in vain.

    All attempts write the same bytes to the same places, so that one that has stood still may
    overwrite what another has completed. It needs no lock.
    """
    # What a log has lost would be lost for good.
    recorded = RecordedSizes(state.timeline.active)
    return tuple(executor.map(partial(_fold, state, check), _tasks(state, planned, recorded)))


def complete_compaction(state: MetadataTable, planned: Planned, stats: Sequence[WriteStat]) -> bool:
    """Steps `metadata-compaction.compare` and `metadata-compaction.complete`, under the lock.

    False where the plan does not hold any more, and was withdrawn, or where files are gone: a
    writer that knows no claims rolls back what it finds before it folds anew.
    """
    instant = planned.instant
    if not covers(state, instant, planned.plan):
        _withdraw(state, instant)
        return False
    sizes = {one.path: one.file_size_in_bytes for one in stats}
    there = _outputs(state, instant)
    if any(there.get(path or "") != size for path, size in sizes.items()):
        return False
    for path in there.keys() - sizes.keys():
        state.storage.delete(path)
    content = commit_content(stats, Operation.COMPACT, compacted=True)
    complete(state, instant, Action.COMPACTION, content)
    return True


def discard_outputs(state: MetadataTable, instant: str) -> None:
    """Remove what has come of a compaction that others have withdrawn or completed meanwhile.

    What is pending stays to those who go on with it. A completed one has its own files, which are
    ours unless Java has folded them.
    """
    files = state.started(instant, Action.COMPACTION)
    if files is not None and files.completed is None:
        return
    named: set[str | None] = set()
    if files is not None and files.completed is not None:
        path = files.completed.entry.path
        metadata = commit.decode(state.storage.read(path), path)
        stats = (one for own in metadata.partition_to_write_stats.values() for one in own)
        named = {one.path for one in stats}
    for path in _outputs(state, instant):
        if path not in named:
            state.storage.delete(path)


def withdraw_compactions(state: MetadataTable) -> bool:
    """Take pending compactions back, which folds nothing twice; whether there were any."""
    started = pending_compactions(state)
    for files in started:
        _withdraw(state, files.instant.requested)
    return bool(started)


def deltacommits_since(state: MetadataTable) -> int:
    """How many deltacommits have completed since the last compaction was planned."""
    last = last_compaction(state)
    completed = state.timeline.active.completed_between(last or None, None, (Action.DELTA_COMMIT,))
    return len(completed)


def refuse_growth(state: MetadataTable, settings: Settings) -> None:
    """Refuse to go on telling a table that cannot be compacted, once it has grown too much."""
    uncertain, most = state.uncertain(), settings[DELTACOMMITS_MAX_WHEN_PENDING]
    if not uncertain or deltacommits_since(state) <= most:
        return
    first = min(uncertain)
    raise Conflict(
        "metadata_table_grows",
        what=f"The metadata table has more than {most} deltacommits since its last compaction.",
        why=(
            f"Lakewarden cannot compact it while {first} is complete there but pending on "
            "the table."
        ),
        now=f"Finish {first} or roll it back, or raise {DELTACOMMITS_MAX_WHEN_PENDING.key}.",
        instant=first,
    )


def draft_compaction(state: MetadataTable, config: TableConfig) -> CompactionPlan:
    """All slices that have logs, as bare names."""
    visibility = load_visibility(state.timeline.active, state.validity, names_decide=False)
    names = compacted_partitions(state)
    listings = together(state.storage, [partial(state.files, name) for name in names])
    slices = [
        group.latest_merged()
        for name, files in zip(names, listings, strict=True)
        for group in file_groups(name, files, visibility)
    ]
    return CompactionPlan(operations=tuple(operation_of(one) for one in slices if one.log_files))


def pending_compactions(state: MetadataTable) -> list[InstantFiles]:
    return [
        files
        for files in state.timeline.active.files
        if files.started_as is Action.COMPACTION and files.completed is None
    ]


def is_planned(state: MetadataTable, instant: str) -> bool:
    """Whether the plan of a compaction is still there, asked where it is."""
    requested = Instant(instant, Action.COMPACTION, State.REQUESTED)
    return state.storage.stat(state.layout.path(requested)) is not None


def _plan(state: MetadataTable, files: InstantFiles) -> CompactionPlan | None:
    """A plan; None for one that was never published whole."""
    if files.requested is None:
        raise corrupt(state.layout.folder, None, f"The plan of {files.instant} does not exist.")
    path = files.requested.entry.path
    try:
        return compaction.decode_plan(state.storage.read(path), path)
    except CorruptTable:
        return None


def _tasks(state: MetadataTable, planned: Planned, recorded: RecordedSizes) -> list[_FoldTask]:
    # The same for all attempts, as their bytes are.
    created_ms = epoch_ms(planned.instant, state.layout.zone) or 0
    return [
        _FoldTask(
            operation,
            planned.instant,
            f"{number}-0-0",
            created_ms,
            recorded_logs(recorded, operation),
        )
        for number, operation in enumerate(planned.plan.operations)
    ]


def _withdraw(state: MetadataTable, instant: str) -> None:
    """Take a compaction off the timeline, and remove its base files unless it has completed.

    Another writer may be about to complete it; it looks for its plan afterwards. Base files may go
    one by one: readers without one read the slice that it was made of.
    """
    files = state.again().started(instant, Action.COMPACTION)
    if files is None or files.completed is not None:
        raise completed_elsewhere(instant)
    remove(state, files)
    now = state.again()
    if now.started(instant, Action.COMPACTION) is not None:
        raise completed_elsewhere(instant)
    for path in _outputs(now, instant):
        state.storage.delete(path)


def _outputs(state: MetadataTable, instant: str) -> dict[str, int]:
    """The base files of a compaction that lie there, and their sizes."""
    partitions = state.partitions()
    listings = together(state.storage, [partial(state.files, name) for name in partitions])
    return {
        f"{partition}/{file.name}": file.size_bytes
        for partition, files in zip(partitions, listings, strict=True)
        for file in files
        if isinstance(file, BaseFile) and file.instant == instant
    }


def _fold(state: MetadataTable, check: Callable[[], None], task: _FoldTask) -> WriteStat:
    """Write the new base file of one slice."""
    operation, storage = task.operation, state.storage
    slice_ = slice_of(storage, operation, task.recorded)
    runs = MetadataFileGroup(storage, slice_, lambda _: True).runs(ALL)
    entries = folded(slice_.partition, runs)
    payload = base_file(entries, task.created_ms)
    check()
    storage.put(task.path, payload)
    log_runs = runs[1:] if slice_.base_file else runs
    return WriteStat(
        file_id=slice_.file_id,
        path=task.path,
        prev_commit=operation.base_instant_time,
        prev_base_file=operation.data_file_path,
        num_writes=len(entries.keys),
        num_inserts=len(entries.keys),
        total_write_bytes=len(payload),
        partition_path=slice_.partition,
        file_size_in_bytes=len(payload),
        total_log_records=sum(len(run.keys) for run in log_runs),
        total_log_blocks=len(log_runs),
        total_log_files_compacted=len(slice_.log_files),
        total_log_size_compacted=sum(log.size_bytes for log in slice_.log_files),
        runtime_stats=RuntimeStats(),
    )


UPKEEP_SETTINGS: tuple[Setting[object], ...] = (
    DELTACOMMITS_MAX,
    DELTACOMMITS_MAX_WHEN_PENDING,
    LOG_COMPACTION_ENABLED,
    LOG_BLOCKS_MIN,
)


def keep_up(
    state: MetadataTable,
    config: TableConfig,
    settings: Settings,
    times: TimeSource,
    ports: Ports,
    known: Weight | None = None,
) -> bool:
    """Withdraw what others have left, and plan a compaction or compact logs if it is time; whether
    anything has changed.

    Step `metadata-write.upkeep`. A table that cannot be compacted, and has grown beyond what is
    set, is refused. A compaction is carried out without the lock: its plan comes before what the
    write tells, so that the newest write can always be rolled back.
    """
    refuse_growth(state, settings)
    most = settings[DELTACOMMITS_MAX]
    if not (settings[LOG_COMPACTION_ENABLED] or _has_left(state)):
        return plan_if_due(state, config, times, most, known)
    # What is done here is not undone with a write that comes too late, so that it looks anew.
    state = state.again()
    if withdraw_strays(state) or withdraw_log_compactions(state):
        return True
    if plan_if_due(state, config, times, most, known):
        return True
    if not settings[LOG_COMPACTION_ENABLED] or pending_compactions(state):
        return False
    draft = draft_log_compaction(state, config, times, blocks_min=settings[LOG_BLOCKS_MIN])
    if draft.instant is None:
        return False
    compact_logs(state, draft, ports)
    return True


def _has_left(state: MetadataTable) -> bool:
    """Whether there seems to be anything to withdraw."""
    is_log_compacted = bool(state.timeline.active.pending((Action.LOG_COMPACTION,)))
    return is_log_compacted or bool(state.validity.strays())
