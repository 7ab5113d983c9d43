"""Deltacommits of the metadata table: each is written as one, and withdrawn as one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lakewarden.engine.file_groups.file_names import BaseFile, DataFile, LogFile
from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.formats.instant_metadata.commit import Operation, RuntimeStats, WriteStat
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.metadata.encoding.records import (
    Entries,
    group_log,
    initial_log,
    initial_log_name,
    log_name,
)
from lakewarden.engine.metadata.reading.shards import (
    GroupCounts,
    file_groups_by_shard,
    file_id,
    shard_of,
)
from lakewarden.engine.metadata.reading.table import MetadataTable
from lakewarden.engine.metadata.writing.instants import (
    begin,
    commit_content,
    complete_now,
    create_file,
    remove,
)
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.storage.side_by_side import both, together
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.next_time import TimeSource

# Logs of fewer entries are written sooner than another worker has taken up one of them.
SHARED_FROM_ENTRIES = 1_000
# In the extra metadata of a deltacommit: the partitions to which its writer has reported.
REPORTED_TO_KEY = "lakewarden.reported_to"
# Partition -> shard -> entries.
Content = Mapping[str, Mapping[str, Entries]]


@dataclass(frozen=True, slots=True, eq=False)
class _GroupTask:
    """The records that one file group gets."""

    partition: str
    file_id: str
    entries: Entries
    instant: str
    token: str
    created_ms: int


@dataclass(frozen=True, slots=True)
class Weight:
    """How many bytes of logs there are since a compaction, and of base files."""

    compacted: str = ""
    logs: int = 0
    bases: int = 0


def write_deltacommit(
    state: MetadataTable,
    instant: str,
    content: Content,
    times: TimeSource,
    ports: Ports,
    beside: Callable[[], object],
) -> Weight:
    """Write entries as the deltacommit of an instant of the data table.

    Steps `metadata-write.begin`, `metadata-write.shards`, `metadata-write.logs` and
    `metadata-write.complete`; until the last one readers see nothing of it. `beside` is asked at
    the time of the last look.
    """
    start = partial(begin, state, instant, Action.DELTA_COMMIT)
    _, files = both(state.storage, start, partial(_files, state, content))
    created_ms = ports.clock.now_ms()
    tasks = [
        _GroupTask(partition, group, entries, instant, f"{number}-0-1", created_ms)
        for partition in sorted(content)
        for number, (group, entries) in enumerate(
            _ensure_groups(state, partition, content[partition], files.get(partition, ()), instant)
        )
    ]
    write = partial(_write_log, state.storage)
    is_little = sum(len(task.entries.keys) for task in tasks) < SHARED_FROM_ENTRIES
    if is_little or state.storage.concurrency.at_once > ports.executor.workers:
        stats = together(state.storage, [partial(write, task) for task in tasks])
    else:
        stats = list(ports.executor.map(write, tasks))
    extra = {REPORTED_TO_KEY: ",".join(sorted(content))}
    written = commit_content(stats, Operation.UPSERT_PREPPED, extra=extra)
    complete_now(state, instant, written, times, beside)
    own = sum(one.file_size_in_bytes for one in stats)
    seen = weight_of(state, [file for one in files.values() for file in one])
    return replace(seen, logs=seen.logs + own)


def weight_of(state: MetadataTable, files: Iterable[DataFile]) -> Weight:
    """The weight of some partitions, from their listings."""
    last, logs, bases = last_compaction(state), 0, dict[str, BaseFile]()
    for file in files:
        if isinstance(file, LogFile):
            logs += file.size_bytes if file.instant > last else 0
        elif file.file_id not in bases or bases[file.file_id].instant < file.instant:
            bases[file.file_id] = file
    return Weight(last, logs, sum(file.size_bytes for file in bases.values()))


def last_compaction(state: MetadataTable) -> str:
    """The instant of the last completed compaction; empty without one."""
    commits = state.timeline.active.completed((Action.COMMIT,))
    return max((one.requested for one in commits), default="")


def write_late(
    state: MetadataTable, instant: str, content: Content, number: tuple[int, int], ports: Ports
) -> None:
    """Add to a completed deltacommit what its writer did not say.

    Readers take it as a part of that deltacommit, wherever that has its place, and it goes with it.
    What comes with the same number takes the place of what came before; a greater one counts more.
    """
    created_ms = ports.clock.now_ms()
    files = _files(state, content)
    token = "{}" + "-{}-{}".format(*number)
    tasks = [
        _GroupTask(partition, group, entries, instant, token.format(task), created_ms)
        for partition in sorted(content)
        for task, (group, entries) in enumerate(
            _ensure_groups(state, partition, content[partition], files.get(partition, ()), instant)
        )
    ]
    for task in tasks:
        state.storage.put(_path_of(task), _payload_of(task))


def reported_to(state: MetadataTable, instant: str, since: str) -> frozenset[str] | None:
    """The partitions that the completed deltacommit of an instant is about; None without one.

    Java names those that have got a file, which is all it says of a partition. What completed
    before the deltacommit `since` had made file groups reported to others of the same name, which
    are gone: it counts as nothing.
    """
    made = state.timeline.completion_time(since)
    files = state.deltacommit(instant)
    if files is None or files.completed is None:
        return frozenset() if state.timeline.is_completed(instant) else None
    completed = files.completed.instant.completed
    if made is None or completed is None or completed <= made:
        return frozenset()
    path = files.completed.entry.path
    metadata = commit.decode(state.storage.read(path), path)
    named = metadata.extra_metadata.get(REPORTED_TO_KEY, "")
    return frozenset(filter(None, (*named.split(","), *metadata.partition_to_write_stats)))


def withdraw_deltacommit(state: MetadataTable, instant: str) -> bool:
    """Remove whatever an earlier attempt at an instant has left; False if there was nothing."""
    files = state.deltacommit(instant)
    if files is None:
        return False
    if files.completed is not None:
        state.storage.delete(files.completed.entry.path)
    for partition, names in find_written(state, instant).items():
        for name in names:
            state.storage.delete(f"{partition}/{name}")
    remove(state, files)
    return True


def withdraw_strays(state: MetadataTable) -> bool:
    """Remove the deltacommits of instants that were taken back while their writers stood still."""
    strays = state.validity.strays()
    for instant in strays:
        withdraw_deltacommit(state, instant)
    return bool(strays)


def find_written(state: MetadataTable, instant: str) -> dict[str, tuple[str, ...]]:
    """The log files of a deltacommit in each partition that has any; no other writes to them."""
    found = {
        partition: tuple(
            file.name
            for file in state.files(partition)
            if isinstance(file, LogFile) and file.instant == instant
        )
        for partition in state.partitions()
    }
    return {partition: names for partition, names in found.items() if names}


def create_groups(
    state: MetadataTable, partition: str, shard: str, count: int, instant: str
) -> tuple[str, ...]:
    """The file groups of a new shard, all of them started with an initial log."""
    groups = tuple(file_id(shard, number) for number in range(count))
    for group in groups:
        path = f"{partition}/{initial_log_name(group, instant)}"
        state.storage.put(path, initial_log(instant))
    return groups


def _files(state: MetadataTable, content: Content) -> dict[str, Sequence[DataFile]]:
    """The files of the partitions with anything to say to them."""
    names = [name for name in sorted(content) if any(content[name].values())]
    listings = [partial(state.files, name) for name in names]
    return dict(zip(names, together(state.storage, listings), strict=True))


def _ensure_groups(
    state: MetadataTable,
    partition: str,
    shards: Mapping[str, Entries],
    files: Sequence[DataFile],
    instant: str,
) -> Iterator[tuple[str, Entries]]:
    """The file groups with something to say to each, those of new shards after their creation."""
    telling = {shard: entries for shard, entries in shards.items() if entries}
    for shard, entries in telling.items():
        groups = _groups(state, partition, shard, files, instant, len(entries.keys))
        for number, own in entries.routed(len(groups)):
            yield groups[number], own


def _groups(
    state: MetadataTable,
    partition: str,
    shard: str,
    files: Sequence[DataFile],
    instant: str,
    key_count: int,
) -> tuple[str, ...]:
    if shard == shard_of(partition):
        present = file_groups_by_shard(files).get(shard)
        if present is None:
            raise _no_groups(partition)
        return present
    # A shard for one partition of the table vanishes with the write that made it.
    validity = state.validity
    settled = [file for file in files if validity.is_completed(file.instant)]
    present = file_groups_by_shard(settled).get(shard)
    if present is not None:
        return present
    return create_groups(state, partition, shard, GroupCounts().of_record_shard(key_count), instant)


def _write_log(storage: Storage, task: _GroupTask) -> WriteStat:
    path, payload = _path_of(task), _payload_of(task)
    # What earlier attempts have left is withdrawn, so that a log which is there now is of a later
    # one: it has the lock, and readers may count on its log already.
    create_file(storage, path, payload, task.instant)
    return WriteStat(
        file_id=task.file_id,
        path=path,
        prev_commit=task.instant,
        num_writes=len(task.entries.keys),
        num_update_writes=len(task.entries.keys),
        num_deletes=len(task.entries.removed),
        total_write_bytes=len(payload),
        partition_path=task.partition,
        file_size_in_bytes=len(payload),
        log_version=1,
        log_offset=0,
        base_file="",
        log_files=(path.rpartition("/")[2],),
        runtime_stats=RuntimeStats(),
    )


def _path_of(task: _GroupTask) -> str:
    return f"{task.partition}/{log_name(task.file_id, task.instant, task.token)}"


def _payload_of(task: _GroupTask) -> bytes:
    return group_log(task.partition, task.entries, task.instant, task.created_ms)


def _no_groups(partition: str) -> CorruptTable:
    return CorruptTable(
        "missing_metadata_partition",
        what=f"The metadata table's partition {partition!r} has no files.",
        why="The table's properties list it as built or in progress.",
        now="Drop the index and build it again.",
        partition=partition,
    )
