"""Requests: what one write shall do, whatever method of the front door asked for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

import pyarrow as pa

from lakewarden.engine.conflicts.read_scopes import ReadScope
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.index.kinds import IndexChoice
from lakewarden.engine.metadata.entries.changes import Located
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.alteration import Alteration
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows
from lakewarden.engine.table.schema import TableSchema
from lakewarden.engine.write.distributed_rows import DistributedRows, RewriteWorkers
from lakewarden.engine.write.files.group_work import GroupWork


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
