"""Requests: what one write shall do, whatever method of the front door asked for it.

The result of a write: what was committed, and what it took.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

import pyarrow as pa

from lakewarden.engine.conflicts.touched_groups import ReadScope
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, Operation
from lakewarden.engine.index.kinds import IndexChoice
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.metadata.entries.changes import Located
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.alteration import Alteration
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.table.schema import TableSchema
from lakewarden.engine.transaction.commit import Receipt
from lakewarden.engine.write.distributed_rows import DistributedRows, RewriteWorkers
from lakewarden.engine.write.files.spec import GroupWork, WrittenFile
from lakewarden.engine.write.plan import WritePlan


class Replacement(Enum):
    """Which file groups a write puts new ones in the place of."""

    NOTHING = auto()
    # Those of the partitions that the rows belong to.
    TOUCHED_PARTITIONS = auto()
    NAMED_PARTITIONS = auto()
    TABLE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a write does to rows as its caller counts them, whatever files are made of it."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Where rows go, if the caller knows it better than an index.

    `stays` are keys that go on living where they are, though other file groups lose them.
    """

    keys: pa.StringArray
    groups: tuple[GroupWork, ...]
    stays: tuple[Located, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """What rows follow from, if they were made from what the table holds.

    None of it may change until they are committed.
    """

    read_scopes: tuple[ReadScope, ...] = ()
    # Keys that the table lacks, so that nothing was done about them.
    absent: KeyedRows | None = None
    # Whether the table lacks them in all partitions, and not only in those of their own.
    absent_everywhere: bool = False

    def __bool__(self) -> bool:
        return bool(self.read_scopes) or self.absent is not None


@dataclass(frozen=True, slots=True, eq=False)
class Incoming:
    """Rows to write. Before they come, those in `gone` leave: their keys, from their partitions."""

    rows: pa.Table
    gone: pa.Table | None = None
    # Which of the rows delete their keys, besides those that say so themselves.
    is_delete: pa.ChunkedArray | None = None
    # None where only the files tell.
    effect: Effect | None = None
    # Who else can make files, if there are more of them than this process should rewrite.
    rewrite_workers: RewriteWorkers | None = None
    placement: Placement | None = None
    findings: Findings = field(default_factory=Findings)

    @property
    def schema(self) -> pa.Schema:
        return self.rows.schema


# Rows that follow from what the table holds are made anew whenever a write begins anew, from the
# very state of the table that conflicts are judged by.
Derivation = Callable[[Snapshot], Incoming | DistributedRows]
# The same for partitions.
ChosenPartitions = tuple[str, ...] | Callable[[Snapshot], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamBatch:
    """Which batch of which stream a write carries out; the same one is committed once.

    `query` is the identity of the query that the batches come from, and `checkpoint` the place of
    its progress, where these are known: another one is refused then.
    """

    stream: str
    number: int
    query: str = ""
    checkpoint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """One write."""

    operation: Operation
    incoming: Incoming | DistributedRows | Derivation
    # The rows only say which keys to delete.
    deletes: bool = False
    # Existing keys are looked up; without it every row is new.
    finds_keys: bool = True
    replacement: Replacement = Replacement.NOTHING
    partitions: ChosenPartitions = ()
    # Rows go into new file groups of balanced sizes, whatever small ones there are.
    divides: bool = False
    # The columns that rows are sorted by before they are divided.
    sort: tuple[str, ...] = ()
    # The index to use instead of the table's.
    index: IndexChoice | None = None
    # Rows are those of their own partitions, even where the index knows keys over all of them.
    within_partitions: bool = False
    # Where the rows have been searched for, if the caller knows it and the rows do not say.
    read_scope: ReadScope | None = None
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    # What becomes of the table's columns, if the write is about them.
    alteration: Alteration | None = None
    # The batch that it is, if it is one of a stream.
    batch: StreamBatch | None = None

    def without_duplicates(self, config: TableConfig) -> "WriteRequest":
        """The same, adding no second row of a key: an insert is an upsert then."""
        if self.operation is not Operation.INSERT or not config.key_fields:
            return self
        return replace(self, operation=Operation.UPSERT, finds_keys=True)

    @property
    def replaces(self) -> bool:
        return self.replacement is not Replacement.NOTHING

    @property
    def says_more(self) -> bool:
        """Whether it does something even without rows."""
        return self.replaces or bool(self.extra_metadata) or self.alteration is not None

    def fixed_schema(self, state: Snapshot, current: TableSchema) -> TableSchema | None:
        """The schema to write with, if the rows have no part in it."""
        if self.alteration is not None:
            return self.alteration.schema(current, state.config)
        return current if self.deletes else None

    @property
    def overwrites_partitions(self) -> bool:
        """Whether rows take the place of their partitions, with no look into the others."""
        return self.replacement is Replacement.TOUCHED_PARTITIONS

    def partitions_of(self, state: Snapshot) -> tuple[str, ...]:
        return self.partitions if isinstance(self.partitions, tuple) else self.partitions(state)

    def incoming_of(self, state: Snapshot) -> Incoming | DistributedRows:
        if isinstance(self.incoming, Incoming | DistributedRows):
            return self.incoming
        return self.incoming(state)


_NOT_PUBLISHED = (
    "The write is committed, but the storage failed before it was published: the next "
    "operation on the table publishes it."
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Commit(Shown):
    """One write. Without rows it has made no instant, and committed nothing.

    `rows_written` counts rows in new files, moved ones among them.

    For updates and merges `rows_updated` counts the rows that matched, also those that merging
    keeps because they are newer.
    """

    instant: str | None
    completed: str | None
    operation: str
    rows_written: int = 0
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    files: int = 0
    bytes: int = 0
    # By phase, in the order in which they came.
    seconds: Mapping[str, float] = field(default_factory=dict)
    errors: tuple[str, ...] = ()
    # What the write has changed of the table's columns.
    columns_added: tuple[str, ...] = ()
    columns_widened: tuple[str, ...] = ()
    # Whether it is an earlier commit, of the same batch of a stream; nothing was written now.
    is_repeated: bool = False
    # Of a batch of a stream: the keys that it asked a record index for, those that the table has,
    # and those that were looked up in memory.
    keys_asked: int = 0
    keys_found: int = 0
    keys_cached: int = 0

    def __str__(self) -> str:
        if self.is_repeated:
            return f"{self.operation}: the batch is in the table, {self.instant or 'without rows'}"
        if self.instant is None:
            return f"{self.operation}: no rows, nothing to commit"
        return (
            f"{self.operation} {self.instant}: {self.rows_inserted} inserted, {self.rows_updated}"
            f" updated, {self.rows_deleted} deleted, {self.files} files, {self.bytes} bytes,"
            f" {sum(self.seconds.values()):.2f} s"
        )


def count_rows(plan: WritePlan, files: Sequence[WrittenFile]) -> Effect:
    """The rows that files count; a moved row is an insert to one file and a delete to another."""
    stats = [file.stat for file in files]
    return Effect(
        inserted=sum(stat.num_inserts for stat in stats) - plan.moved,
        updated=sum(stat.num_update_writes for stat in stats) + plan.moved,
        deleted=sum(stat.num_deletes for stat in stats) - plan.departures,
    )


def committed(
    operation: str,
    receipt: Receipt,
    metadata: CommitMetadata,
    effect: Effect,
    seconds: Mapping[str, float],
) -> Commit:
    """The result of a write whose instant has completed."""
    stats = [stat for group in metadata.partition_to_write_stats.values() for stat in group]
    return Commit(
        instant=receipt.instant,
        completed=receipt.completion_time,
        operation=operation,
        rows_written=sum(stat.num_writes for stat in stats),
        rows_inserted=effect.inserted,
        rows_updated=effect.updated,
        rows_deleted=effect.deleted,
        files=len(stats),
        bytes=sum(stat.file_size_in_bytes for stat in stats),
        seconds=seconds,
        errors=() if receipt.is_published else (_NOT_PUBLISHED,),
    )


def nothing_committed(operation: str, seconds: Mapping[str, float]) -> Commit:
    """The result of a write that had nothing to say."""
    return Commit(instant=None, completed=None, operation=operation, seconds=seconds)
