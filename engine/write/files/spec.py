"""What a write tells its tasks: how files are made, and what goes into one file group.

Both travel to other processes, so they hold nothing but values.

Meta columns: what Hudi keeps of every row besides the table's own columns.

Summaries of a base file's columns: from its footer, or from its rows where it does not tell.

Written files: what a task hands back about each data file it made.

Group work: what one file group has to take in during one write.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.bloom import BloomOptions
from lakewarden.engine.formats.instant_metadata.commit import WriteStat
from lakewarden.engine.formats.log.write import BLOCK_BYTES_MAX
from lakewarden.engine.formats.parquet_footer import column_ranges
from lakewarden.engine.metadata.entries.changes import ColumnSummary, NewFile, ValueChange
from lakewarden.engine.metadata.entries.row_indexes import RowIndexes
from lakewarden.engine.metadata.entries.summaries import (
    columns_with_nan,
    summaries_of_footer,
    summaries_of_parts,
)
from lakewarden.engine.read.merge.base_file import BaseReader
from lakewarden.engine.read.merge.slice_reader import BATCH_ROWS
from lakewarden.engine.read.merge.spec import ReadSpec
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.change_logging import LoggingMode
from lakewarden.engine.table.config import TableType
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.table.merge_rules import MergeRules
from lakewarden.engine.table.schema import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    FILE_NAME,
    PARTITION_PATH,
    RECORD_KEY,
    TableSchema,
)
from lakewarden.engine.transaction.state.markers import MarkerType

# What a row keeps when its file is rewritten; the other two are the same for a whole file.
OWN_COLUMNS = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY)


def with_own_columns(
    rows: pa.Table, keys: pa.StringArray, *, instant: str, task_number: int, first: int = 0
) -> pa.Table:
    """New rows behind their commit time, sequence number and key; numbers go on from `first`."""
    columns = [constant(instant, len(keys)), sequence(instant, task_number, first, len(keys)), keys]
    fields = [pa.field(name, pa.string()) for name in OWN_COLUMNS]
    return pa.table([*columns, *rows.columns], schema=pa.schema([*fields, *rows.schema]))


def with_file_columns(rows: pa.Table, partition: str, file_name: str) -> pa.Table:
    """Rows with all meta columns in their order; those of the file are kept as dictionaries."""
    count, own = len(rows), len(OWN_COLUMNS)
    columns = {
        **dict(zip(OWN_COLUMNS, rows.columns[:own], strict=True)),
        PARTITION_PATH: repeated(partition, count),
        FILE_NAME: repeated(file_name, count),
    }
    named = dict(zip(rows.column_names[own:], rows.columns[own:], strict=True))
    return pa.table({**columns, **named})


def without_identity(rows: pa.Table) -> pa.Table:
    """Rows as tables with virtual keys store them: of the meta columns only the file is filled."""
    for name in (*OWN_COLUMNS, PARTITION_PATH):
        place = rows.schema.get_field_index(name)
        nulls = pa.nulls(len(rows), pa.string())
        rows = rows.set_column(place, pa.field(name, pa.string()), nulls)
    return rows


def constant(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), count)


def repeated(text: str, count: int) -> pa.DictionaryArray:
    """One text for all rows, at the cost of four bytes each."""
    zeros = pa.array(np.zeros(count, np.int32))
    return pa.DictionaryArray.from_arrays(zeros, pa.array([text]), safe=False)


def sequence(instant: str, task_number: int, first: int, count: int) -> pa.Array:
    """The sequence numbers of rows: the instant, the task, and a running number."""
    numbers = pa.array(np.arange(first, first + count)).cast(pa.string())
    return pc.binary_join_element_wise(f"{instant}_{task_number}", numbers, "_")


class NanWatch:
    """Looks at rows on their way into a file: a footer does not tell that a column has a NaN."""

    def __init__(self) -> None:
        self.columns: set[str] = set()

    def over(self, parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The same parts, each looked at when it is taken."""
        for part in parts:
            self.columns |= columns_with_nan(part)
            yield part


def base_file_summaries(
    storage: Storage,
    path: str,
    footer: pq.FileMetaData,
    columns: tuple[str, ...],
    with_nan: Iterable[str],
) -> dict[str, ColumnSummary]:
    """The summaries of a new base file; very long values have to be read back, some at a time."""
    found = summaries_of_footer(footer, columns, with_nan=frozenset(with_nan))
    names = footer.schema.to_arrow_schema().names
    missing = [name for name in columns if name in names and name not in found]
    if not missing or not footer.num_rows:
        return found
    sizes = {one.name: (one.packed_bytes, one.unpacked_bytes) for one in column_ranges(footer)}
    rows = BaseReader(storage).tables(path, missing, batch_rows=BATCH_ROWS, small_buffers=True)
    for name, summary in summaries_of_parts(rows, missing).items():
        packed, unpacked = sizes.get(name, (0, 0))
        found[name] = replace(summary, packed_bytes=packed, unpacked_bytes=unpacked)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class WrittenFile:
    """One data file: for the commit's metadata, and for the metadata table."""

    key: FileGroupId
    stat: WriteStat
    file: NewFile
    # Keys that came to live in the group with this file, and keys that it lost.
    arrived: pa.StringArray
    left: pa.StringArray
    # What secondary indexes have to learn of the rows.
    valued: tuple[ValueChange, ...] = ()
    # The log of change data beside the file.
    captured: NewFile | None = None

    @property
    def files(self) -> tuple[NewFile, ...]:
        return (self.file,) if self.captured is None else (self.file, self.captured)


@dataclass(frozen=True, slots=True, eq=False)
class GroupWork:
    """Rows for one file group, as places in the write's `KeyedRows`.

    `updates` are rows whose key the group has, deletes among them; `inserts` are new to it.
    `departures` are rows whose key leaves the group for another partition: the group forgets the
    key whatever the ordering values say.
    """

    key: FileGroupId
    # None begins a new file group.
    slice: FileSlice | None
    updates: npt.NDArray[np.int64]
    inserts: npt.NDArray[np.int64]
    departures: npt.NDArray[np.int64]

    @property
    def row_count(self) -> int:
        return len(self.updates) + len(self.inserts) + len(self.departures)


# Without a level, Arrow's gzip tries as hard as it can and takes fifty times as long.
_LEVELS = {"zstd": 1, "gzip": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """How files are encoded."""

    codec: str = "zstd"
    level: int | None = None
    row_group_bytes: int = 120 << 20
    uses_dictionaries: bool = True
    bloom: BloomOptions = field(default_factory=BloomOptions)
    has_parquet_logs: bool = False
    log_block_bytes: int = BLOCK_BYTES_MAX

    @property
    def compression_level(self) -> int | None:
        """The level to ask for; None for codecs that have none."""
        if self.codec not in _LEVELS:
            return None
        return _LEVELS[self.codec] if self.level is None else self.level


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSpec:
    """What every task of one write has to know."""

    instant: str
    # A later attempt at the same instant names its files differently.
    attempt: int
    table_type: TableType
    schema: TableSchema
    # The Avro schema of records in files, with the meta columns.
    records_text: str
    rules: MergeRules
    # How the slices that are rewritten are read.
    read: ReadSpec
    files: FileOptions = FileOptions()
    # No writer looks for keys in base files, so that new ones may go to logs.
    logs_take_inserts: bool = False
    # New file groups begin with a base file even so.
    begins_with_bases: bool = False
    # Lookups in base files find keys that only logs delete: these must leave the base files, too.
    rewrites_bases: bool = False
    # Columns whose statistics the metadata table keeps.
    summarised: tuple[str, ...] = ()
    # Further indexes that are made from rows and footers.
    indexes: RowIndexes = field(default_factory=RowIndexes)
    # An index says where each key lives, so that it matters which keys a log brings back.
    tracks_keys: bool = False
    # That index has said where the keys of the write live, so that no file need say it again.
    index_tells_lives: bool = False
    # A worker that runs a task a second time names its files differently.
    task_attempt: int = 0
    # How files are announced; those who make files put the list, a task its direct marker.
    markers: frozenset[MarkerType] = frozenset({MarkerType.DIRECT})
    # The column that has the very text of the record key, if there is one.
    key_column: str | None = None
    # What is logged of changed rows, where the table captures changes.
    captures: LoggingMode | None = None
    # Threads that one task may keep busy; more than one where tasks are fewer than cores.
    threads: int = 1

    def write_token(self, task_number: int) -> str:
        return f"{task_number}-{self.task_attempt}-{self.attempt}"

    @property
    def key_footers(self) -> BloomOptions | None:
        """How footers tell of keys; those of files that store no keys do not."""
        return None if self.has_virtual_keys else self.files.bloom

    @property
    def has_virtual_keys(self) -> bool:
        return self.read.virtual_keys is not None

    @property
    def has_lists(self) -> bool:
        return MarkerType.TIMELINE_SERVER_BASED in self.markers


@dataclass(frozen=True, slots=True, eq=False)
class GroupTask:
    """The rows for one file group, taken out of those of the write.

    Departures are rows whose key leaves the group: only the key counts.
    """

    key: FileGroupId
    # None begins a new file group.
    slice: FileSlice | None
    number: int
    rows: KeyedRows
    is_insert: npt.NDArray[np.bool_]
    is_departure: npt.NDArray[np.bool_]

    @property
    def changes(self) -> KeyedRows:
        """Rows whose keys the group knows; departures among them delete unconditionally."""
        places = np.flatnonzero(~self.is_insert)
        taken = self.rows.take(places)
        leaving = self.is_departure[places]
        return KeyedRows(
            taken.rows,
            taken.keys,
            taken.partitions,
            taken.is_delete | leaving,
            taken.is_unconditional | leaving,
        )

    @property
    def inserts(self) -> KeyedRows:
        """New rows; a delete of a key that is not there is nothing to write."""
        return self.rows.take(np.flatnonzero(self.is_insert & ~self.rows.is_delete))


def group_task(work: GroupWork, rows: KeyedRows, number: int) -> GroupTask:
    """The task of one file group; `number` is its own within the write."""
    parts = (work.updates, work.inserts, work.departures)
    sizes = [len(part) for part in parts]
    kinds = np.repeat(np.arange(len(parts)), sizes)
    taken = rows.take(np.concatenate(parts))
    return GroupTask(work.key, work.slice, number, taken, kinds == 1, kinds == 2)
