"""Compaction of the metadata table: the logs of all file groups folded into new base files.

It runs inside a write once enough deltacommits have passed, or logs would grow without end and Java
could not archive the timeline. It waits while some instant is completed here and still pending on
the data table: what base files hold cannot be rolled back any more.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

from lakewarden.engine.file_groups.file_names import BaseFile
from lakewarden.engine.file_groups.planned_slices import operation_of, recorded_logs, slice_of
from lakewarden.engine.file_groups.recorded_sizes import RecordedSizes, Sizes
from lakewarden.engine.file_groups.slices import file_groups
from lakewarden.engine.file_groups.visibility import load_visibility
from lakewarden.engine.formats.instant_metadata import compaction
from lakewarden.engine.formats.instant_metadata.commit import Operation, RuntimeStats, WriteStat
from lakewarden.engine.formats.instant_metadata.compaction import (
    CompactionOperation,
    CompactionPlan,
)
from lakewarden.engine.kernel.errors import Conflict, CorruptTable, corrupt
from lakewarden.engine.kernel.settings import Setting, Settings, whole_number
from lakewarden.engine.metadata.encoding.base_files import base_file, base_name
from lakewarden.engine.metadata.entries.folding import folded
from lakewarden.engine.metadata.reading.file_group import ALL, MetadataFileGroup
from lakewarden.engine.metadata.reading.table import MetadataTable
from lakewarden.engine.metadata.writing.builds import compacted_partitions
from lakewarden.engine.metadata.writing.coverage import covers
from lakewarden.engine.metadata.writing.instants import (
    commit_content,
    complete,
    completed_elsewhere,
    publish,
    remove,
)
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.instants.instant import Action, epoch_ms
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


def compact_if_due(
    state: MetadataTable,
    config: TableConfig,
    times: TimeSource,
    ports: Ports,
    *,
    deltacommits_max: int = DELTACOMMITS_MAX.default,
) -> bool:
    """Finish compactions that were started, then compact if it is time; whether anything was done.

    Steps of `metadata-compaction`: plan, fold, compare, complete. A crash after the first leaves a
    plan that the next write executes.
    """
    if finish_compactions(state, ports):
        return True
    if not _is_due(state, deltacommits_max):
        return False
    return compact(state, config, times, ports) is not None


def finish_compactions(state: MetadataTable, ports: Ports) -> tuple[str, ...]:
    """Execute the plans that a dead writer has left, and remove torn ones; their instants."""
    started = _pending(state)
    for files in started:
        _finish(state, files, ports)
    return tuple(files.instant.requested for files in started)


def compact(
    state: MetadataTable, config: TableConfig, times: TimeSource, ports: Ports
) -> tuple[str, tuple[WriteStat, ...]] | None:
    """Compact all slices that have logs: the instant and the new base files; None without any."""
    plan = draft_compaction(state, config)
    if not plan.operations:
        return None
    instant = times.next()
    publish(state, instant, Action.COMPACTION, compaction.encode_plan(plan))
    stats = _execute(state, instant, plan, ports)
    if stats is None:
        raise completed_elsewhere(instant)
    return instant, stats


def withdraw_compactions(state: MetadataTable) -> bool:
    """Take pending compactions back, which folds nothing twice; whether there were any."""
    started = _pending(state)
    for files in started:
        _withdraw(state, files.instant.requested)
    return bool(started)


def deltacommits_since(state: MetadataTable) -> int:
    """How many deltacommits have completed since the last compaction was planned."""
    active = state.timeline.active
    last = max((one.requested for one in active.completed((Action.COMMIT,))), default="")
    return len(active.completed_between(last or None, None, (Action.DELTA_COMMIT,)))


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


def _is_due(state: MetadataTable, deltacommits_max: int) -> bool:
    return not state.uncertain() and deltacommits_since(state) >= deltacommits_max


def draft_compaction(state: MetadataTable, config: TableConfig) -> CompactionPlan:
    """All slices that have logs, as bare names."""
    visibility = load_visibility(state.timeline.active, state.validity, names_decide=False)
    slices = [
        group.latest_merged()
        for partition in compacted_partitions(state)
        for group in file_groups(partition, state.files(partition), visibility)
    ]
    return CompactionPlan(operations=tuple(operation_of(one) for one in slices if one.log_files))


def _pending(state: MetadataTable) -> list[InstantFiles]:
    return [
        files
        for files in state.timeline.active.files
        if files.started_as is Action.COMPACTION and files.completed is None
    ]


def _finish(state: MetadataTable, files: InstantFiles, ports: Ports) -> None:
    """Execute a plan that a dead writer has left; one that was never published whole is removed."""
    if files.requested is None:
        raise corrupt(state.layout.folder, None, f"The plan of {files.instant} does not exist.")
    path = files.requested.entry.path
    try:
        plan = compaction.decode_plan(state.storage.read(path), path)
    except CorruptTable:
        remove(state, files)
        return
    instant = files.instant.requested
    if covers(state.again(), instant, plan):
        _execute(state, instant, plan, ports)
    else:
        _withdraw(state, instant)


def _execute(
    state: MetadataTable, instant: str, plan: CompactionPlan, ports: Ports
) -> tuple[WriteStat, ...] | None:
    """The new base files; None where the plan does not hold any more, and was withdrawn."""
    # All attempts write the same bytes. The one that completes records how large the files are, and
    # an attempt that had paused may overwrite them afterwards.
    created_ms = epoch_ms(instant, state.layout.zone) or 0
    # What a log has lost would be lost for good.
    recorded = RecordedSizes(state.timeline.active)
    tasks = [
        _FoldTask(
            operation, instant, f"{number}-0-0", created_ms, recorded_logs(recorded, operation)
        )
        for number, operation in enumerate(plan.operations)
    ]
    ours = frozenset(task.path for task in tasks)
    for partition in sorted({one.partition_path or "" for one in plan.operations}):
        _remove_outputs(state, partition, instant, ours)
    stats = tuple(ports.executor.map(partial(_fold, state.storage), tasks))
    if not covers(state.again(), instant, plan):
        _withdraw(state, instant)
        return None
    content = commit_content(stats, Operation.COMPACT, compacted=True)
    complete(state, instant, Action.COMPACTION, content)
    return stats


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
    for partition in now.partitions():
        _remove_outputs(now, partition, instant, ())


def _remove_outputs(
    state: MetadataTable, partition_name: str, instant: str, ours: Collection[str]
) -> None:
    """Remove base files of an earlier attempt that are named otherwise than ours.

    Those that are ours are written over with the same entries, and readers never miss them.
    """
    for file in state.files(partition_name):
        path = f"{partition_name}/{file.name}"
        if isinstance(file, BaseFile) and file.instant == instant and path not in ours:
            state.storage.delete(path)


def _fold(storage: Storage, task: _FoldTask) -> WriteStat:
    """Write the new base file of one slice."""
    operation = task.operation
    slice_ = slice_of(storage, operation, task.recorded)
    runs = MetadataFileGroup(storage, slice_, lambda _: True).runs(ALL)
    entries = folded(slice_.partition, runs)
    payload = base_file(entries, task.created_ms)
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
