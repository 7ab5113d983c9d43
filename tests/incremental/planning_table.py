"""A toy table on which the real planners plan: its data files hold no rows, only bytes.

What counts for a plan is which files there are, how large they are, what the timeline says, and of
which instants the blocks of logs are.
Instants, ledgers, plans, commits and rollbacks are made by the engine's own steps.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from lakewarden.engine.conflicts.conflicts import ObservedInstants
from lakewarden.engine.file_groups.file_names import PARTITION_METADATA
from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.instant_metadata import compaction
from lakewarden.engine.formats.instant_metadata import replace as clustering
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, Operation, WriteStat
from lakewarden.engine.formats.instant_metadata.replace import ReplaceCommitMetadata
from lakewarden.engine.formats.log.block import BlockKind
from lakewarden.engine.formats.log.reader import effective_blocks, read_blocks
from lakewarden.engine.formats.log.write import BlockOrigin, encode_block
from lakewarden.engine.metadata.entries.changes import TableChange
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.table.schema import SCHEMA_KEY
from lakewarden.engine.timeline.archived.rows import ArchivedInstant
from lakewarden.engine.timeline.archived.writer import archive
from lakewarden.engine.timeline.instants.instant import Action, State
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.commit import Outcome, Receipt, commit, outputs_of
from lakewarden.engine.transaction.start import start
from lakewarden.engine.transaction.state.context import Context, load_for_writing
from lakewarden.engine.transaction.state.markers import MarkedFile, MarkerKind, leave_marker
from tests.engine.transaction.transaction_table import PROPERTIES, TransactionTable, Writer

MOR = {**PROPERTIES, "hoodie.table.type": "MERGE_ON_READ"}
COW = PROPERTIES
SCHEMA = (
    '{"type": "record", "name": "t", "fields": '
    '[{"name": "k", "type": "string"}, {"name": "p", "type": "string"}]}'
)


@dataclass(frozen=True)
class OpenWrite:
    """A write that has made its files and has not committed yet."""

    writer: Writer
    attempt: Attempt
    stats: tuple[WriteStat, ...]
    seen: ObservedInstants


@dataclass
class ToyTable(TransactionTable):
    """A table in memory, written to by the file group."""

    properties: dict[str, str] = field(default_factory=lambda: dict(MOR))

    def context(self, **arguments: str) -> Context:
        return self.writer(**arguments).context

    def slices(self, partitions: tuple[str, ...] | None = None) -> tuple[FileSlice, ...]:
        """What a reader sees."""
        state = load_snapshot(self.storage)
        groups = state.file_groups(state.visibility(), partitions, use_metadata=False)
        return tuple(group.latest_merged() for group in groups)

    def uncompacted(self) -> frozenset[FileGroupId]:
        return frozenset(slice_.key for slice_ in self.slices() if slice_.log_files)

    def begin_write(
        self, *, logs: Iterable[FileGroupId] = (), bases: Iterable[FileGroupId] = (), size: int = 10
    ) -> OpenWrite:
        """A write as far as to its files: logs for some file groups, base files for others."""
        self.clock.advance(100)
        own = self.writer()
        seen = own.seen()
        is_mor = self.properties == MOR
        attempt = own.begin(Action.DELTA_COMMIT if is_mor else Action.COMMIT)
        stats = [write_log(own, attempt, key, size) for key in logs]
        stats += [write_base(own, attempt, key, size) for key in bases]
        return OpenWrite(own, attempt, tuple(stats), seen)

    def end_write(self, write: OpenWrite) -> Receipt:
        self.clock.advance(100)
        with write.attempt:
            outcome = write.writer.outcome(write.attempt, *write.stats, seen=write.seen)
            appended = frozenset(key_of(stat) for stat in write.stats if stat.log_files is not None)
            metadata = replace(
                outcome.metadata,
                extra_metadata={SCHEMA_KEY: SCHEMA},
                operation_type=Operation.UPSERT,
            )
            outcome = replace(outcome, metadata=metadata, appended=appended)
            return commit(write.writer.context, write.attempt, outcome)

    def append(self, *keys: FileGroupId, size: int = 10) -> Receipt:
        """A whole write to logs."""
        return self.end_write(self.begin_write(logs=keys, size=size))

    def insert(self, *keys: FileGroupId, size: int = 10) -> Receipt:
        """A whole write of base files."""
        return self.end_write(self.begin_write(bases=keys, size=size))

    def begin_plan(self, instant: str) -> tuple[Writer, Attempt]:
        self.clock.advance(100)
        own = self.writer()
        attempt = start(own.context, instant).attempt
        assert attempt is not None
        return own, attempt

    def carry_out(self, instant: str, *, size: int = 10) -> Receipt:
        """Execute a plan: one file for each file group, or for each group of them."""
        own, attempt = self.begin_plan(instant)
        with attempt:
            outcome = planned_outcome(own, attempt, self.plan_of(instant), size)
            return commit(own.context, attempt, outcome)

    def plan_of(self, instant: str) -> bytes:
        snapshot = load_for_writing(self.context())
        files = snapshot.pending(instant)
        assert files is not None
        assert files.requested is not None
        return self.storage.read(files.requested.entry.path)

    def archive(self, keep: int) -> int:
        """Archive the oldest completed instants; how many."""
        active = self.timeline()
        pending = [instant.requested for instant in active.pending()]
        limit = min(pending, default="9")
        old = [
            files
            for files in active.files
            if files.completed is not None and files.instant.requested < limit
        ]
        chosen = old[: max(len(old) - keep, 0)]
        if chosen:
            rows = [_row(self, files) for files in chosen]
            archive(self.storage, active.layout.history_folder, rows)
        for files in chosen:
            self._clean(files.instant.action, active.read(files.instant))
            for file in files:
                self.storage.delete(file.entry.path)
        return len(chosen)

    def _clean(self, action: Action, content: bytes) -> None:
        """Remove what a replace commit has replaced, before it is forgotten that it has."""
        if action is Action.REPLACE_COMMIT:
            replaced = clustering.decode(content, "replaced").partition_to_replace_file_ids
            for partition, file_ids in replaced.items():
                for entry in self.storage.walk(partition):
                    if any(file_id in entry.name for file_id in file_ids):
                        self.storage.delete(entry.path)


def key_of(stat: WriteStat) -> FileGroupId:
    return FileGroupId(stat.partition_path or "", stat.file_id)


def write_base(own: Writer, attempt: Attempt, key: FileGroupId, size: int) -> WriteStat:
    name = f"{key.file_id}_{attempt.write_token(0)}_{attempt.instant}.parquet"
    return _written(own, attempt, key, name, b"x" * size)


def write_log(
    own: Writer, attempt: Attempt, key: FileGroupId, size: int, compacted: tuple[str, ...] = ()
) -> WriteStat:
    name = f".{key.file_id}_{attempt.instant}.log.1_{attempt.write_token(0)}"
    content = log_of(attempt.instant, size, compacted)
    return replace(_written(own, attempt, key, name, content), log_files=(name,), log_version=1)


def log_of(instant: str, size: int, compacted: tuple[str, ...] = ()) -> bytes:
    """A log with one block, of which nobody reads more than its head."""
    headers = BlockOrigin(instant, compacted_instants=compacted).headers()
    return encode_block(BlockKind.AVRO, headers, b"x" * size)


def planned_outcome(own: Writer, attempt: Attempt, plan: bytes, size: int) -> Outcome:
    """What carrying out a plan of any service comes to."""
    if attempt.action is Action.CLUSTERING:
        return _clustered(own, attempt, plan, size)
    operations = compaction.decode_plan(plan, "the plan").operations
    keys = [FileGroupId(one.partition_path or "", one.file_id or "") for one in operations]
    if attempt.action is Action.LOG_COMPACTION:
        stats = [_folded(own, attempt, one, size) for one in operations]
        metadata = CommitMetadata(
            partition_to_write_stats=_by_partition(stats), operation_type=Operation.LOG_COMPACT
        )
        return _outcome(attempt, metadata, keys)
    stats = [write_base(own, attempt, key, size) for key in keys]
    metadata = CommitMetadata(
        partition_to_write_stats=_by_partition(stats),
        compacted=True,
        operation_type=Operation.COMPACT,
    )
    return _outcome(attempt, metadata, keys)


def _folded(
    own: Writer, attempt: Attempt, operation: compaction.CompactionOperation, size: int
) -> WriteStat:
    """A log in the place of those that an operation names."""
    key = FileGroupId(operation.partition_path or "", operation.file_id or "")
    paths = [f"{key.partition}/{name}" for name in operation.delta_file_paths]
    blocks = [block for path in paths for block in read_blocks(own.storage.read(path), path)]
    in_force = effective_blocks(blocks, lambda _: True)
    return write_log(own, attempt, key, size, tuple(block.instant for block in in_force))


def _clustered(own: Writer, attempt: Attempt, plan: bytes, size: int) -> Outcome:
    requested = clustering.decode_plan(plan, "the plan").clustering_plan
    assert requested is not None
    keys, stats = [], []
    for number, group in enumerate(requested.input_groups):
        slices = [FileGroupId(one.partition_path or "", one.file_id or "") for one in group.slices]
        keys += slices
        new = FileGroupId(slices[0].partition, f"c{attempt.instant}x{number}")
        stats.append(write_base(own, attempt, new, size))
    replaced: dict[str, tuple[str, ...]] = {}
    for key in keys:
        replaced[key.partition] = (*replaced.get(key.partition, ()), key.file_id)
    metadata = ReplaceCommitMetadata(
        partition_to_write_stats=_by_partition(stats),
        operation_type=Operation.CLUSTER,
        partition_to_replace_file_ids=replaced,
    )
    return _outcome(attempt, metadata, keys)


def _outcome(attempt: Attempt, metadata: CommitMetadata, keys: Iterable[FileGroupId]) -> Outcome:
    return Outcome(
        metadata=metadata,
        change=TableChange(instant=attempt.instant),
        touched=frozenset(keys),
        outputs=outputs_of(metadata),
    )


def _by_partition(stats: Iterable[WriteStat]) -> dict[str, tuple[WriteStat, ...]]:
    found: dict[str, tuple[WriteStat, ...]] = {}
    for stat in stats:
        partition = stat.partition_path or ""
        found[partition] = (*found.get(partition, ()), stat)
    return found


def _written(
    own: Writer, attempt: Attempt, key: FileGroupId, name: str, content: bytes
) -> WriteStat:
    file = MarkedFile(key.partition, name)
    leave_marker(own.storage, attempt.instant, file, MarkerKind.CREATE)
    own.storage.put(f"{key.partition}/{PARTITION_METADATA}", b"#partition metadata\n")
    own.storage.put(file.path, content)
    return WriteStat(
        file_id=key.file_id,
        path=file.path,
        partition_path=key.partition,
        file_size_in_bytes=len(content),
    )


def _row(table: ToyTable, files: Iterable[object]) -> ArchivedInstant:
    by_state = {file.instant.state: file for file in files}  # type: ignore[attr-defined]
    completed = by_state[State.COMPLETED]
    plan = by_state.get(State.REQUESTED)
    return ArchivedInstant(
        completed.instant,
        table.storage.read(completed.entry.path),
        None if plan is None else table.storage.read(plan.entry.path),
    )
