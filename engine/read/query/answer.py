"""Answers: a query planned on one snapshot and read, all of it or an error.

A clean may remove files of a snapshot while they are read, and an index may go. As long as nothing
was handed out, the read begins anew on the table as it is then; after that it ends with an error
that names the clean.

Scans: which slices a query reads, and what it leaves out and why.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.kernel.errors import Conflict, CorruptTable, LakewardenError
from lakewarden.engine.read.merge.slice_reader import SliceReader, side_by_side
from lakewarden.engine.read.merge.spec import ReadSpec
from lakewarden.engine.read.query.prune import SkippedPart
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import OUTDATED, SNAPSHOTS_MAX, Memory, Snapshot, load_snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import load_config
from lakewarden.engine.timeline.instants.instant import Action, Instant
from lakewarden.engine.timeline.removals import removals_between
from lakewarden.engine.timeline.timeline import ActiveTimeline


class PlannedAnswer(Protocol):
    """A planned query of any kind: rows that can be read."""

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the rows."""
        ...

    def table(self, storage: Storage, executor: Executor) -> pa.Table:
        """All rows."""
        ...

    def batches(self, storage: Storage) -> Iterator[pa.RecordBatch]:
        """All rows, batch after batch."""
        ...


@dataclass(frozen=True, slots=True)
class IndexUse:
    """What an index did for a read: how much it skipped, or why it was not asked."""

    index: str
    skipped_count: int
    reason: str | None = None
    what: str = "file groups"

    def __str__(self) -> str:
        if self.reason is not None:
            return f"the index {self.index} was not used: {self.reason}"
        return f"the index {self.index} skipped {self.skipped_count} {self.what}"


@dataclass(frozen=True, slots=True)
class Scan:
    """A planned query: the slices to read, how, and everything that need not be read."""

    slices: tuple[FileSlice, ...]
    skipped: tuple[SkippedPart, ...]
    spec: ReadSpec
    # The indexes that the filter concerns.
    indexes: tuple[IndexUse, ...] = ()

    @property
    def output_schema(self) -> pa.Schema:
        return self.spec.output_schema

    def table(self, storage: Storage, executor: Executor) -> pa.Table:
        """All rows, slices side by side; few slices share the cores."""
        reader = SliceReader(storage, self.spec)
        each = max(executor.workers // max(len(self.slices), 1), 1)
        tables = executor.map(lambda slice_: reader.table(slice_, workers=each), self.slices)
        return side_by_side(self.spec.output_schema, tables)

    def batches(self, storage: Storage) -> Iterator[pa.RecordBatch]:
        """All rows, slice after slice, batch after batch."""
        reader = SliceReader(storage, self.spec)
        for slice_ in self.slices:
            yield from reader.batches(slice_)


ValueT = TypeVar("ValueT")
PlannedT = TypeVar("PlannedT", bound=PlannedAnswer)


@dataclass(frozen=True, slots=True)
class Answer(Generic[PlannedT]):
    """A query on a table, which is planned anew where its snapshot has lost files."""

    storage: Storage
    plan: Callable[[Snapshot], PlannedT]
    memory: Memory = field(default_factory=Memory)

    def scan(self) -> PlannedT:
        """The plan alone; its files may vanish before they are read."""
        return self._attempt(lambda _, scan: scan)

    def of_scan(self, use: Callable[[PlannedT], ValueT]) -> ValueT:
        """What its plan says, also of what is in files."""
        return self._attempt(lambda _, scan: use(scan))

    def table(self, executor: Executor) -> pa.Table:
        """All rows at once."""
        return self._attempt(lambda _, scan: scan.table(self.storage, executor))

    def batches(self) -> "Batches":
        """All rows, batch after batch; the first one is read at once."""
        return self._attempt(self._begin)

    def _attempt(self, use: Callable[[Snapshot, PlannedT], ValueT]) -> ValueT:
        for _ in range(SNAPSHOTS_MAX - 1):
            snapshot = load_snapshot(self.storage, self.memory)
            try:
                snapshot.read_ahead(definitions=False)
                return use(snapshot, self.plan(snapshot))
            except (CorruptTable, Conflict) as error:
                self.memory.kept = None
                if files_vanished(snapshot, error) is None:
                    raise
            finally:
                self.memory.forget_large()
        snapshot = load_snapshot(self.storage, self.memory)
        with naming_removals(snapshot):
            return use(snapshot, self.plan(snapshot))

    def _begin(self, snapshot: Snapshot, scan: PlannedT) -> "Batches":
        batches = scan.batches(self.storage)
        first = next(batches, None)
        rows = iter(()) if first is None else _rest(snapshot, first, batches)
        return Batches(scan.output_schema, rows)


class Batches(Iterator[pa.RecordBatch]):
    """Rows, batch after batch, read as they are taken; once, by Python or by Arrow's readers."""

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        self.schema = schema
        self._batches = batches

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    def reader(self) -> pa.RecordBatchReader:
        """What is left as Arrow's reader of a stream."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """What is left as a stream for DuckDB, Polars, pandas and others."""
        return self.reader().__arrow_c_stream__(requested_schema)


def _rest(
    snapshot: Snapshot, first: pa.RecordBatch, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    yield first
    with naming_removals(snapshot):
        yield from batches


@contextmanager
def naming_removals(snapshot: Snapshot) -> Iterator[None]:
    """Say which clean removed the files of a snapshot that are missed here; damage stays damage."""
    try:
        yield
    except (CorruptTable, Conflict) as error:
        vanished = files_vanished(snapshot, error)
        if vanished is None:
            raise
        raise vanished from error


def files_vanished(snapshot: Snapshot, error: LakewardenError) -> Conflict | None:
    """The error of a reader whose snapshot has lost files; None where that is not what happened."""
    if error.code not in OUTDATED:
        return None
    try:
        now = snapshot.timeline.active.again()
    except Conflict as moved:
        return moved
    removals = removals_between(snapshot.timeline.active, now)
    if not removals and (gone := _index_gone(snapshot, now)):
        return gone
    removals = removals or _removals_of_metadata(snapshot)
    if not removals:
        return None
    names = " and ".join(str(one) for one in removals[-2:])
    path = error.parameters.get("path")
    return Conflict(
        "files_vanished",
        what=f"{path or 'A file'} was removed while the read that needs it ran.",
        why=f"It ran into {names}, which removes files that newer ones replace.",
        now="Read again. To avoid it, raise hoodie.clean.commits.retained.",
        path=path,
        removed_by=tuple(one.requested for one in removals),
    )


def _removals_of_metadata(snapshot: Snapshot) -> tuple[Instant, ...]:
    """What may have removed files of the metadata table; its timeline has own cleans and plans."""
    if not snapshot.config.metadata_partitions:
        return ()
    known = snapshot.metadata.timeline.active
    return removals_between(known, known.again())


def _index_gone(snapshot: Snapshot, now: ActiveTimeline) -> Conflict | None:
    """The error of a reader whose snapshot has an index that was dropped or built anew since."""
    there = load_config(snapshot.storage)
    gone = [one for one in snapshot.config.metadata_partitions if not there.has_metadata(one)]
    built = {one.key for one in now.completed((Action.INDEXING,))}
    if not gone and built <= {one.key for one in snapshot.timeline.active.instants}:
        return None
    return Conflict(
        "index_replaced",
        what="The read was ended.",
        why=f"{', '.join(gone) or 'An index'} was dropped or built anew while the read used it.",
        now="Read again.",
        partitions=tuple(gone),
    )
