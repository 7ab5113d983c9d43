"""Initialising a partition of the metadata table: its file groups, and what they begin with.

Each partition is initialised by a deltacommit of its own at an instant that is no date: the first
is `00000000000000000`, the others count on. A file group begins with a log that holds nothing, and
with a base file if there are entries for it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial

from lakewarden.engine.file_groups.file_names import PARTITION_METADATA
from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.formats.instant_metadata.commit import Operation, RuntimeStats, WriteStat
from lakewarden.engine.formats.properties import format_properties
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.metadata.encoding.records import Entries, base_file, base_name
from lakewarden.engine.metadata.reading.table import MetadataTable
from lakewarden.engine.metadata.writing.deltacommit import create_groups
from lakewarden.engine.metadata.writing.instants import begin, commit_content, complete_now, remove
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.port import Storage, Won
from lakewarden.engine.timeline.heartbeats import is_live, read_standard_heartbeat
from lakewarden.engine.timeline.instants.instant import Action, Instant, InstantFiles, State
from lakewarden.engine.timeline.next_time import TimeSource

_DIGITS = 17
# How often Java gives the heartbeat of what it initialises, unless it was set otherwise.
_JAVAS_INTERVAL_MS = 60_000
_LAST_INITIAL = "999".zfill(_DIGITS)


@dataclass(frozen=True, slots=True, eq=False)
class NewShard:
    """A shard to be made, with what it begins with."""

    group_count: int
    entries: Entries


@dataclass(frozen=True, slots=True, eq=False)
class _BaseTask:
    partition: str
    file_id: str
    number: int
    entries: Entries
    instant: str
    created_ms: int


def initialise_partition(
    state: MetadataTable,
    partition_name: str,
    shards: Mapping[str, NewShard],
    times: TimeSource,
    ports: Ports,
) -> None:
    """Make a partition. It counts once the table's properties list it, which is not done here."""
    instant = begin_initial(state)
    put_partition_metadata(state, partition_name, instant)
    created_ms = ports.clock.now_ms()
    tasks = []
    for shard, new in shards.items():
        groups = create_groups(state, partition_name, shard, new.group_count, instant)
        tasks += [
            _BaseTask(partition_name, groups[number], number, entries, instant, created_ms)
            for number, entries in new.entries.routed(new.group_count)
        ]
    stats = list(ports.executor.map(partial(_write_base, state.storage), tasks))
    content = commit_content(stats, Operation.BULK_INSERT_PREPPED)
    complete_now(state, instant, content, times)


def create_partitions(
    state: MetadataTable,
    instant: str,
    groups: Mapping[str, Mapping[str, int]],
    times: TimeSource,
) -> None:
    """Make the file groups of some partitions, which hold nothing; by partition and shard.

    What tells that a partition has all of them comes last. The caller has published the instant.
    """
    for partition, shards in groups.items():
        state.storage.delete_folder(partition)
        for shard, count in shards.items():
            create_groups(state, partition, shard, count, instant)
    for partition in groups:
        put_partition_metadata(state, partition, instant)
    complete_now(state, instant, commit_content([], Operation.BULK_INSERT_PREPPED), times)


def forget_unfinished(state: MetadataTable, now_ms: int, *, but: Collection[str] = ()) -> bool:
    """Remove initialisations that were started and not completed whole; whether there were any.

    Those that builds beside writers work with stay: ours, which the caller names, and Java's, which
    give a heartbeat.
    """
    unfinished = [
        files
        for files in state.timeline.active.files
        if files.instant.requested <= _LAST_INITIAL
        and files.instant.requested not in but
        and not _is_whole(state, files)
        and not _is_at_work(state, files, now_ms)
    ]
    for files in unfinished:
        remove(state, files)
    return bool(unfinished)


def _is_whole(state: MetadataTable, files: InstantFiles) -> bool:
    if files.completed is None:
        return False
    path = files.completed.entry.path
    payload = state.storage.read(path)
    try:
        commit.decode(payload, path)
    except CorruptTable:
        return False
    return bool(payload)


def _is_at_work(state: MetadataTable, files: InstantFiles, now_ms: int) -> bool:
    beat = read_standard_heartbeat(state.storage, files.instant.requested, _JAVAS_INTERVAL_MS)
    return beat is not None and is_live(beat, now_ms)


def begin_initial(state: MetadataTable) -> str:
    """Begin an initialisation at the next free number.

    A statement of Java's takes one without the lock, too: the first one has it.
    """
    number = int(next_initial_instant(state))
    while True:
        instant = str(number).zfill(_DIGITS)
        path = state.layout.path(Instant(instant, Action.DELTA_COMMIT, State.REQUESTED))
        if isinstance(state.storage.create_exclusive(path, b""), Won):
            begin(state, instant, Action.DELTA_COMMIT)
            return instant
        number += 1


def next_initial_instant(state: MetadataTable) -> str:
    """The number after that of the last initialisation, which may have been archived."""
    instants = (
        *state.timeline.active.instants,
        *state.timeline.archive.instants(None, _LAST_INITIAL),
    )
    used = [int(one.requested) for one in instants if one.requested <= _LAST_INITIAL]
    return str(max(used, default=-1) + 1).zfill(_DIGITS)


def put_partition_metadata(state: MetadataTable, partition: str, instant: str) -> None:
    """Say of a partition that it holds what was true when an instant completed."""
    properties = {"commitTime": instant, "partitionDepth": "1"}
    content = format_properties(properties, "partition metadata")
    state.storage.put(f"{partition}/{PARTITION_METADATA}", content)


def _write_base(storage: Storage, task: _BaseTask) -> WriteStat:
    name = base_name(task.file_id, task.instant, f"{task.number}-0-0")
    path = f"{task.partition}/{name}"
    payload = base_file(task.entries, task.created_ms)
    storage.put(path, payload)
    return base_stat(path, task.file_id, len(task.entries.keys), len(payload))


def base_stat(path: str, file_id: str, entries: int, size_bytes: int) -> WriteStat:
    """What a commit of the metadata table says of a new base file."""
    return WriteStat(
        file_id=file_id,
        path=path,
        num_writes=entries,
        num_inserts=entries,
        total_write_bytes=size_bytes,
        partition_path=path.partition("/")[0],
        file_size_in_bytes=size_bytes,
        runtime_stats=RuntimeStats(),
    )
