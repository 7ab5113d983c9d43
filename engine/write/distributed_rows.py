"""Distributed rows: rows to write that stay where they are; the workers that hold them write them.

A plan sees of them what it decides by: record keys, partition paths, and a few columns. The same
plan then says which of them go into which file group.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.kernel.settings import Setting, flag, whole_number
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import table_config
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.table.schema import TableSchema
from lakewarden.engine.timeline.ledger.entries import Claim
from lakewarden.engine.transaction.attempts.attempt import assert_last
from lakewarden.engine.transaction.state.markers import MarkedFile, MarkerKind, list_markers
from lakewarden.engine.write.files.spec import GroupTask, GroupWork, WriteSpec, WrittenFile
from lakewarden.engine.write.files.write_groups import planned_files, write_groups
from lakewarden.engine.write.plan import WritePlan
from lakewarden.engine.write.routing.sizes import SizeLimits
from lakewarden.engine.write.rows.prepare import keyed_rows

# The column that says which of the distributed rows a row of the plan stands for.
PLACE = "_lakewarden_place"

LOCAL_ROWS_MAX = Setting(
    "lakewarden.spark.local_rows_max",
    250_000,
    whole_number,
    (
        "Up to how many rows a Spark DataFrame is fetched and written by local threads; Spark's "
        "workers write larger ones, and with 0 all"
    ),
)
LOCAL_REWRITE_BYTES_MAX = Setting(
    "lakewarden.spark.local_rewrite_bytes_max",
    2 << 30,
    whole_number,
    (
        "From how many bytes of existing files to rewrite Spark's workers write fetched rows "
        "after all"
    ),
)
BLOCK_SPECULATION = Setting(
    "hoodie.block.writes.on.speculative.execution",
    True,
    flag,
    "Whether Lakewarden refuses writes through Spark while speculative execution is on",
)
DISTRIBUTED_SETTINGS: tuple[Setting[object], ...] = (
    LOCAL_ROWS_MAX,
    LOCAL_REWRITE_BYTES_MAX,
    BLOCK_SPECULATION,
)

_NO_KEYS = pa.array([], pa.string())


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPreparation:
    """How incoming rows get keys and partition paths; the same wherever they are."""

    properties: Mapping[str, str]
    # The evolved schema, which has all columns of the rows.
    schema: TableSchema
    deletes: bool
    partition_matters: bool

    def fit(self, rows: pa.Table) -> KeyedRows:
        return keyed_rows(
            rows,
            table_config(self.properties),
            self.schema,
            deletes=self.deletes,
            partition_matters=self.partition_matters,
        )


@dataclass(frozen=True, slots=True)
class GroupOrder:
    """What a file group takes in; its rows come in the order updates, inserts, departures."""

    key: FileGroupId
    slice: FileSlice | None
    number: int
    updates: int
    inserts: int
    departures: int

    def task(self, rows: KeyedRows) -> GroupTask:
        counts = (self.updates, self.inserts, self.departures)
        kinds = np.repeat(np.arange(len(counts)), counts)
        return GroupTask(self.key, self.slice, self.number, rows, kinds == 1, kinds == 2)

    def files(self, spec: WriteSpec, *, deletes: bool) -> set[tuple[MarkedFile, MarkerKind]]:
        """The files that may come of it: rows that delete the same key become one, which is known
        only where the rows are."""
        answers = {bool(self.inserts)} | ({False} if deletes else set())
        return {
            file
            for has_inserts in answers
            for file in planned_files(
                spec, self.key, self.slice, self.number, has_inserts=has_inserts
            )
        }


def group_order(work: GroupWork, number: int) -> GroupOrder:
    counts = (len(work.updates), len(work.inserts), len(work.departures))
    return GroupOrder(work.key, work.slice, number, *counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributedWrite:
    """What those who write distributed rows have to know; it travels to other processes."""

    spec: WriteSpec
    claim: Claim
    limits: SizeLimits
    # Earlier writes do not show how large rows become: the workers that hold the rows measure them.
    measures: bool = False

    @property
    def tag(self) -> str:
        """The tag of the jobs of this write."""
        return f"lakewarden-{self.spec.instant}"

    def list_files(
        self,
        storage: Storage,
        orders: Iterable[GroupOrder],
        task_attempt: int,
        *,
        deletes: bool = False,
    ) -> None:
        """Announce the files that a try at a task is going to make, where files are listed."""
        if self.spec.has_lists:
            assert_last(storage, self.claim)
            spec = replace(self.spec, task_attempt=task_attempt)
            files = {file for order in orders for file in order.files(spec, deletes=deletes)}
            # No other try at a task has this number.
            list_markers(storage, spec.instant, task_attempt, sorted(files))

    def write_file(self, storage: Storage, task: GroupTask, task_attempt: int) -> WrittenFile:
        """Make one file, if the write is still under way when this begins and when it ends.

        A fenced-off worker may still be running after the commit or the rollback. Its file is no
        longer looked for then, so it deletes the file itself.
        """
        assert_last(storage, self.claim)
        written = write_groups(storage, replace(self.spec, task_attempt=task_attempt), task)
        try:
            assert_last(storage, self.claim)
        except Conflict:
            for file in written.files:
                storage.delete(file.path)
            raise
        # Without an index of keys the keys are not needed.
        return written if self.spec.tracks_keys else _without_keys(written)


class PreparedDistributedRows(Protocol):
    """Distributed rows that are fit to be written."""

    @property
    def rows(self) -> KeyedRows:
        """What a plan sees of them; nothing if they are to be divided as they come."""
        ...

    @property
    def is_keyed(self) -> bool:
        """Whether a plan sees all rows."""
        ...

    @property
    def unpacked_bytes(self) -> int: ...

    def write(
        self, job: DistributedWrite, plan: WritePlan, watch: Callable[[], None]
    ) -> Iterator[WrittenFile]:
        """Make the files; once the watch raises, which is asked all the time, no more are made."""
        ...


@runtime_checkable
class DistributedRows(Protocol):
    """Rows somewhere else, in the columns of `schema`."""

    @property
    def schema(self) -> pa.Schema: ...

    def keyed(self, preparation: RowPreparation, columns: Sequence[str]) -> PreparedDistributedRows:
        """Fit all rows; a plan needs some columns of them. Raises if any row is wrong."""
        ...

    def as_they_come(self, preparation: RowPreparation) -> PreparedDistributedRows:
        """Let the workers that hold the rows divide them into new file groups."""
        ...


class RewriteWorkers(Protocol):
    """Others who can make files of rows that are here."""

    def write(
        self, job: DistributedWrite, plan: WritePlan, watch: Callable[[], None]
    ) -> Iterator[WrittenFile]:
        """As `PreparedDistributedRows.write`."""
        ...


def places_of(rows: KeyedRows) -> npt.NDArray[np.int64]:
    """Which distributed rows the rows of a plan stand for; rows of a delete have no columns to say
    so."""
    if not rows.rows.num_columns:
        return np.arange(len(rows))
    return np.asarray(rows.rows.column(PLACE).to_numpy())


def _without_keys(written: WrittenFile) -> WrittenFile:
    return replace(written, arrived=_NO_KEYS, left=_NO_KEYS)
