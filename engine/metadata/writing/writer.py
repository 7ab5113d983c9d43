"""Writing to the metadata table: one deltacommit for each action on the data table.

It completes before the action does; until then readers do not count it.

Open builds: the partitions being built that a write reports to, beside those that are ready.

A build that has all its file groups takes what writes say from then on. Into one that has some of
them nothing goes, since keys would go to the wrong group: Java makes them without the lock, so a
write waits a while for a live build of Java's and passes over a dead one.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from lakewarden.engine.formats.instant_metadata import rollback
from lakewarden.engine.formats.instant_metadata.rollback import (
    InstantReference,
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    RollbackRequest,
)
from lakewarden.engine.kernel.errors import Conflict, CorruptTable, InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.metadata.entries.changes import TableChange
from lakewarden.engine.metadata.entries.content import content_of, unmaintained
from lakewarden.engine.metadata.entries.statistics import PartitionMemory
from lakewarden.engine.metadata.reading.definitions import (
    IndexDefinition,
    definitions_path,
)
from lakewarden.engine.metadata.reading.table import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_INDEX_PREFIX,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
    MetadataTable,
    load_metadata_table,
)
from lakewarden.engine.metadata.writing.builds import being_built, builds_on, has_all_groups
from lakewarden.engine.metadata.writing.compact import (
    keep_up,
    pending_compactions,
    withdraw_compactions,
)
from lakewarden.engine.metadata.writing.coverage import has_taken
from lakewarden.engine.metadata.writing.definitions_file import (
    column_stats_definition,
    define_indexes,
)
from lakewarden.engine.metadata.writing.deltacommit import (
    Weight,
    find_written,
    withdraw_deltacommit,
    write_deltacommit,
)
from lakewarden.engine.metadata.writing.instants import begin, complete, is_compaction
from lakewarden.engine.metadata.writing.log_compact import withdraw_log_compactions
from lakewarden.engine.metadata.writing.widening import widen_later
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.keygen.virtual_keys import refuse_key_index
from lakewarden.engine.table.versions import index_version
from lakewarden.engine.timeline.instants.instant import Action, InstantFiles
from lakewarden.engine.timeline.next_time import TimeSource
from lakewarden.engine.timeline.removals import may_have_removed, outdated

GROUPS_WAIT_SECONDS = 10.0
_LOOK_EVERY_SECONDS = 0.2
# A build of Java gives no sign while it makes file groups: one that began lately may be at work.
_ALIVE_MS = 120_000


def open_builds(state: MetadataTable, unknown: Collection[str], ports: Ports) -> Iterator[str]:
    """The partitions being built that an action can report to; `unknown` are those it cannot."""
    for partition in being_built(state):
        if partition in unknown or _waits_for_another(state, partition):
            continue
        if has_all_groups(state, partition) or _gets_its_groups(state, partition, ports):
            yield partition


def _waits_for_another(state: MetadataTable, partition: str) -> bool:
    """Whether it is made from one that is not there yet, so that only its builder can tell."""
    return partition == PARTITION_STATS and not state.config.has_metadata(COLUMN_STATS)


def _gets_its_groups(state: MetadataTable, partition: str, ports: Ports) -> bool:
    """Wait for a live builder to have made all file groups; False where none is at work."""
    until = ports.clock.elapsed_seconds() + GROUPS_WAIT_SECONDS
    while _is_begun_lately(state, partition, ports):
        ports.clock.sleep(_LOOK_EVERY_SECONDS)
        if has_all_groups(state, partition):
            return True
        if ports.clock.elapsed_seconds() >= until:
            raise _groups_missing(partition)
    return False


def _is_begun_lately(state: MetadataTable, partition: str, ports: Ports) -> bool:
    now_ms = ports.clock.now_ms()
    return any(
        files.inflight is not None and abs(now_ms - files.inflight.entry.modified_ms) <= _ALIVE_MS
        for files, names in builds_on(state.data_timeline.active)
        if partition in names
    )


def _groups_missing(partition: str) -> Conflict:
    return Conflict(
        "index_groups_incomplete",
        what=f"The write waited {GROUPS_WAIT_SECONDS:.0f} s for the file groups of {partition!r}.",
        why="Another process is creating them, and keys written before that would be misplaced.",
        now="Nothing was changed. Write again, or drop the index if its build has died.",
        partition=partition,
    )


_MAINTAINED = (FILES, COLUMN_STATS, PARTITION_STATS, BLOOM_FILTERS, RECORD_INDEX)
_OF_KEYS = (BLOOM_FILTERS, RECORD_INDEX, SECONDARY_INDEX_PREFIX)
_MAINTAINED_LIKE = (SECONDARY_INDEX_PREFIX, EXPRESSION_INDEX_PREFIX)


@dataclass(frozen=True, slots=True)
class Reported:
    """What there is to compact after a write, as far as its writer has seen."""

    weight: Weight | None = None
    # Whether a compaction is pending.
    has_plan: bool = False


def refuse_unmaintained(storage: Storage, config: TableConfig) -> None:
    """Refuse to write to a table with an index that a write would leave untrue."""
    for partition in (*config.metadata_partitions, *config.metadata_partitions_inflight):
        if partition not in _MAINTAINED and not partition.startswith(_MAINTAINED_LIKE):
            raise unmaintained(storage, partition)
        if partition.startswith(_OF_KEYS):
            refuse_key_index(config, partition)


def refuse_unheard(state: MetadataTable) -> None:
    """Refuse to write beside a metadata table that lacks a write: its files would stay unknown.

    Reads list the storage as long as the write is seen: until it, or the deltacommits beside it,
    leave the active timelines. So nothing may be archived either.
    """
    write = state.unheard_write if state.config.metadata_partitions else None
    if write is not None:
        known = state.data_timeline.active
        if may_have_removed(known, known.again()):
            # Its deltacommit was there, and went before the write itself was rolled back.
            raise outdated(f"{write} was rolled back, or archived, while it was taken.")
        raise CorruptTable(
            "write_without_metadata",
            what=f"The write {write} has not updated the metadata table.",
            why="Its writer did not know of the metadata table, which therefore lacks its files.",
            now="CALL delete_metadata_table, then CALL create_metadata_table. Reads are right.",
            instant=write,
        )


def write_change(
    state: MetadataTable,
    definitions: Sequence[IndexDefinition],
    change: TableChange,
    times: TimeSource,
    ports: Ports,
    settings: Settings | None = None,
    known: Weight | None = None,
    beside: Callable[[], object] = lambda: None,
    memory: PartitionMemory | None = None,
) -> Reported:
    """Tell the metadata table what an action has done; the caller holds the table's lock.

    Steps of `metadata-write`: withdraw, upkeep, definitions, widen, begin, shards, logs, complete.
    Table and definitions are those of the snapshot that was loaded in this hold of the lock. Safe
    to repeat: what an earlier attempt at the same instant has left is withdrawn first. What the
    caller has to ask at the end is asked `beside` the last look.
    """
    config = state.config
    if not config.metadata_partitions:
        return Reported()
    refuse_unmaintained(state.root, config)
    refuse_unheard(state)
    if withdraw_deltacommit(state, change.instant):
        state = load_metadata_table(state.root, config)
    times.move_past(state.timeline.active.newest_time())
    if keep_up(state, config, settings or Settings(), times, ports, known):
        state = load_metadata_table(state.root, config)
    definitions = _with_new_columns(state.root, config, definitions, change)
    reported = content_of(state, definitions, change, memory)
    content = {partition: reported.of(partition) for partition in config.metadata_partitions}
    # Statistics of partitions are made from those of all files, which its builder alone has.
    of_files = replace(reported, change=replace(change, live_files={}))
    for partition in open_builds(state, change.unknown, ports):
        is_of_files = reported.has_partitions(partition)
        content[partition] = (of_files if is_of_files else reported).of(partition)
    widen_later(reported, content, ports)
    weight = write_deltacommit(state, change.instant, content, times, ports, beside)
    return Reported(weight, has_plan=bool(pending_compactions(state)))


def _with_new_columns(
    storage: Storage,
    config: TableConfig,
    definitions: Sequence[IndexDefinition],
    change: TableChange,
) -> Sequence[IndexDefinition]:
    """Let the definition of the statistics list columns that they have not been kept of so far.

    That comes before the statistics: to Java a column of the definition that a file has none of is
    null in that file, which is what a new column is in the older files.
    """
    defined = next((one for one in definitions if one.partition == COLUMN_STATS), None)
    if defined is None:
        return definitions
    seen = dict.fromkeys(column for file in change.new_files for column in file.columns)
    added = [column for column in seen if column not in defined.columns]
    if not added:
        return definitions
    version = defined.version if defined.columns else index_version(config)
    path = definitions_path(config)
    columns = [*defined.columns, *added]
    define_indexes(storage, path, [column_stats_definition(columns, version=version)])
    others = (one for one in definitions if one.partition != COLUMN_STATS)
    return (*others, replace(defined, columns=tuple(columns), version=version))


def rollback_change(
    storage: Storage,
    config: TableConfig,
    instant: str,
    rollback_instant: str,
    times: TimeSource,
    ports: Ports,
) -> None:
    """Undo what an instant wrote to the metadata table, at the instant of the data's rollback.

    The caller holds the table's lock and completes its own rollback afterwards. Steps of
    `metadata-rollback`: begin, hide, files, instant, complete. A later caller resumes with the same
    rollback instant. An instant that never reached the metadata table needs nothing.
    """
    if not config.metadata_partitions:
        return
    state = load_metadata_table(storage, config)
    started = state.rollback(rollback_instant)
    files = state.deltacommit(instant)
    if (started is None and files is None) or (started and _is_completed(state, started)):
        return
    times.move_past(state.timeline.active.newest_time())
    # One that was started on without knowing of the rollback would bring back what goes now.
    if withdraw_compactions(state):
        state = state.again()
    _refuse_compacted(state, instant, files)
    # Log compactions may hold the instant's records as well.
    if files is not None and withdraw_log_compactions(state, since=files.instant.completed):
        state = load_metadata_table(storage, config)
    started_ms = ports.clock.now_ms()
    plan = _plan(state, started) or _new_plan(state, instant)
    begin(state, rollback_instant, Action.ROLLBACK, rollback.encode_plan(plan))
    withdraw_deltacommit(state, instant)
    done = _done(plan, rollback_instant, ports.clock.now_ms() - started_ms)
    complete(state, rollback_instant, Action.ROLLBACK, rollback.encode(done))


def _is_completed(state: MetadataTable, files: InstantFiles) -> bool:
    """Whether a rollback is completed; a completed file that was torn is removed."""
    if files.completed is None:
        return False
    path = files.completed.entry.path
    try:
        rollback.decode(state.storage.read(path), path)
    except CorruptTable:
        state.storage.delete(path)
        return False
    return True


def _plan(state: MetadataTable, files: InstantFiles | None) -> RollbackPlan | None:
    """The plan of a rollback that was started, if it was published whole."""
    if files is None or files.requested is None:
        return None
    path = files.requested.entry.path
    try:
        return rollback.decode_plan(state.storage.read(path), path)
    except CorruptTable:
        return None


def _new_plan(state: MetadataTable, instant: str) -> RollbackPlan:
    requests = (
        RollbackRequest(partition_path=partition, files_to_be_deleted=names)
        for partition, names in find_written(state, instant).items()
    )
    return RollbackPlan(
        instant_to_rollback=InstantReference(commit_time=instant, action=Action.DELTA_COMMIT.value),
        rollback_requests=tuple(requests),
    )


def _done(plan: RollbackPlan, rollback_instant: str, taken_ms: int) -> RollbackMetadata:
    target, requests = plan.instant_to_rollback, plan.rollback_requests
    return RollbackMetadata(
        start_rollback_time=rollback_instant,
        time_taken_in_millis=taken_ms,
        total_files_deleted=sum(len(one.files_to_be_deleted) for one in requests),
        commits_rollback=(target.commit_time,) if target else (),
        partition_metadata={
            one.partition_path: RollbackPartition(
                partition_path=one.partition_path, success_delete_files=one.files_to_be_deleted
            )
            for one in requests
        },
        instants_rollback=(target,) if target else (),
    )


def _refuse_compacted(state: MetadataTable, instant: str, files: InstantFiles | None) -> None:
    """Refuse when base files hold what the instant wrote, for there it cannot be undone."""
    completed = files.instant.completed if files else None
    later = [
        one.instant
        for one in state.timeline.active.files
        if is_compaction(one)
        and completed is not None
        and one.instant.requested > completed
        and has_taken(state, one, instant)
    ]
    if later:
        raise InvalidRequest(
            "metadata_compacted",
            what=(
                f"Lakewarden cannot roll back {instant}: the metadata table was compacted at "
                f"{later[0].requested}, after it."
            ),
            why="The compacted base files hold its entries together with later ones.",
            now="Restore the table to a savepoint, or drop its metadata table first.",
            instant=instant,
            compaction=later[0].requested,
        )
