"""Log compaction of the metadata table: the logs of a file group folded into one.

Where compaction has to wait, or is rare since base files are large, readers then have fewer logs
to look into. It is only ever a short cut: the logs stay, and count again if it is taken back.
"""

from dataclasses import dataclass
from functools import partial

from lakewarden.engine.file_groups.listing import RecordedSizes
from lakewarden.engine.file_groups.planned_slices import operation_of
from lakewarden.engine.file_groups.slices import FileSlice, file_groups, load_visibility
from lakewarden.engine.formats.instant_metadata import compaction
from lakewarden.engine.formats.instant_metadata.commit import Operation, RuntimeStats, WriteStat
from lakewarden.engine.formats.instant_metadata.compaction import CompactionPlan
from lakewarden.engine.kernel.settings import Setting, flag, whole_number
from lakewarden.engine.metadata.encoding.records import compacted_log, log_name
from lakewarden.engine.metadata.entries.content import folded_logs
from lakewarden.engine.metadata.reading.partition import ALL, MetadataFileGroup
from lakewarden.engine.metadata.reading.table import MetadataTable
from lakewarden.engine.metadata.writing.builds import compacted_partitions
from lakewarden.engine.metadata.writing.deltacommit import find_written
from lakewarden.engine.metadata.writing.instants import commit_content, complete, publish, remove
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.timeline.instants.instant import Action, InstantFiles, epoch_ms, time_text
from lakewarden.engine.timeline.next_time import TimeSource

LOG_COMPACTION_ENABLED = Setting(
    "hoodie.metadata.log.compaction.enable",
    False,
    flag,
    "Whether the logs of the metadata table are compacted among themselves between compactions",
)
LOG_BLOCKS_MIN = Setting(
    "hoodie.metadata.log.compaction.blocks.threshold",
    5,
    whole_number,
    "Blocks in the logs of a file group of the metadata table from which on they become one",
)


@dataclass(frozen=True, slots=True)
class LogCompactionDraft:
    """The slices to take, and the instant; without one, the pending instant to wait for."""

    slices: tuple[FileSlice, ...] = ()
    instant: str | None = None
    waits_for: str | None = None


@dataclass(frozen=True, slots=True)
class _LogTask:
    slice: FileSlice
    instant: str
    token: str
    created_ms: int


def draft_log_compaction(
    state: MetadataTable, config: TableConfig, times: TimeSource, *, blocks_min: int
) -> LogCompactionDraft:
    """What a log compaction would take now; writes nothing."""
    uncertain = state.uncertain()
    if uncertain:
        return LogCompactionDraft(waits_for=min(uncertain))
    slices = tuple(one for one in _slices(state, config) if _has_enough(state, one, blocks_min))
    if not slices:
        return LogCompactionDraft()
    first = min((one.requested for one in state.data_timeline.active.pending()), default=None)
    if first is None:
        return LogCompactionDraft(slices, times.next())
    instant = _before(state, first)
    newest = max((one.requested for one in state.timeline.active.instants), default="")
    if instant is None or instant <= newest:
        return LogCompactionDraft(slices, waits_for=first)
    return LogCompactionDraft(slices, instant)


def compact_logs(
    state: MetadataTable, draft: LogCompactionDraft, ports: Ports
) -> tuple[WriteStat, ...]:
    """Carry a draft out.

    Its instant is older than those of all writes that are under way, so that the logs of these come
    behind it for every reader. Steps of `metadata-log-compaction`: plan, fold, complete. After a
    crash the next writer withdraws what there is.
    """
    assert draft.instant is not None
    plan = CompactionPlan(
        operations=tuple(operation_of(one) for one in draft.slices),
        strategy=compaction.LOG_COMPACTION,
        preserve_hoodie_metadata=True,
    )
    publish(state, draft.instant, Action.LOG_COMPACTION, compaction.encode_plan(plan))
    created_ms = ports.clock.now_ms()
    tasks = [
        _LogTask(slice_, draft.instant, f"{number}-0-0", created_ms)
        for number, slice_ in enumerate(draft.slices)
    ]
    stats = tuple(ports.executor.map(partial(_fold, state.storage), tasks))
    content = commit_content(stats, Operation.LOG_COMPACT, compacted=True)
    complete(state, draft.instant, Action.LOG_COMPACTION, content)
    return stats


def withdraw_log_compactions(state: MetadataTable, *, since: str | None = None) -> bool:
    """Take back log compactions: those that were left, and those completed after a time.

    What they stand for is still there. The answer is whether there were any.
    """
    chosen = [files for files in state.timeline.active.files if _is_to_go(files, since)]
    for files in chosen:
        if files.completed is not None:
            state.storage.delete(files.completed.entry.path)
        for partition_name, names in find_written(state, files.instant.requested).items():
            for name in names:
                state.storage.delete(f"{partition_name}/{name}")
        remove(state, files)
    return bool(chosen)


def _is_to_go(files: InstantFiles, since: str | None) -> bool:
    if files.started_as is not Action.LOG_COMPACTION:
        return False
    completed = files.instant.completed
    return completed is None or (since is not None and completed > since)


def _slices(state: MetadataTable, config: TableConfig) -> list[FileSlice]:
    visibility = load_visibility(state.timeline.active, state.validity, names_decide=False)
    recorded = RecordedSizes(state.timeline.active)
    return [
        group.latest_merged()
        for name in compacted_partitions(state)
        for group in file_groups(name, recorded.of_files(name, state.files(name)), visibility)
    ]


def _has_enough(state: MetadataTable, slice_: FileSlice, blocks_min: int) -> bool:
    blocks = _group(state.storage, slice_).log_blocks
    return len(blocks) >= blocks_min and len({block.instant for block in blocks}) > 1


def _group(storage: Storage, slice_: FileSlice) -> MetadataFileGroup:
    return MetadataFileGroup(storage, slice_, lambda _: True)


def _before(state: MetadataTable, instant: str) -> str | None:
    """The millisecond before an instant; None if it is no date."""
    zone = state.data_timeline.active.layout.zone
    moment_ms = epoch_ms(instant, zone)
    return None if moment_ms is None else time_text(moment_ms - 1, zone)


def _fold(storage: Storage, task: _LogTask) -> WriteStat:
    """Write the log that stands for the logs of one slice."""
    slice_ = task.slice
    logs_only = FileSlice(
        slice_.partition, slice_.file_id, slice_.base_instant, None, slice_.log_files
    )
    group = _group(storage, logs_only)
    runs = group.runs(ALL)
    entries = folded_logs(slice_.partition, runs)
    compacted = tuple(dict.fromkeys(block.instant for block in group.log_blocks))
    name = log_name(slice_.file_id, task.instant, task.token)
    path = f"{slice_.partition}/{name}"
    payload = compacted_log(slice_.partition, entries, task.instant, task.created_ms, compacted)
    storage.put(path, payload)
    return WriteStat(
        file_id=slice_.file_id,
        path=path,
        prev_commit=slice_.base_instant,
        num_writes=len(entries.keys),
        num_update_writes=len(entries.keys),
        num_deletes=len(entries.removed),
        total_write_bytes=len(payload),
        partition_path=slice_.partition,
        file_size_in_bytes=len(payload),
        log_version=1,
        log_offset=0,
        base_file="",
        log_files=(name,),
        total_log_records=sum(len(run.keys) for run in runs),
        total_log_blocks=len(runs),
        total_log_files_compacted=len(slice_.log_files),
        total_log_size_compacted=sum(log.size_bytes for log in slice_.log_files),
        runtime_stats=RuntimeStats(),
    )
