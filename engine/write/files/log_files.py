"""Log files: a delta commit's changes to one file group, as blocks that Java reads as its own.

Row changes: what a log did to the keys and to the indexed values of its file group.

An update in a log may bring back a key that an earlier log deleted, and an update or a delete may
come too late to count. Only the rows that readers see before and after tell.

Change logs: what a write did to the rows of a file group that it rewrites, for Java and for us.

Java infers the changes of new base files and of logs from these. Of a rewritten base file it wants
a log of change data, and fails without.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.file_groups.file_names import CDC_SUFFIX
from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.log.deletes import Deletes, deletes
from lakewarden.engine.formats.log.reader import read_blocks
from lakewarden.engine.formats.log.write import (
    BlockOrigin,
    avro_blocks,
    change_blocks,
    delete_block,
    parquet_block,
)
from lakewarden.engine.metadata.entries.changes import NewFile, ValueChange
from lakewarden.engine.metadata.entries.row_indexes import SecondaryIndex, value_changes
from lakewarden.engine.read.merge.key_index import KeyIndex, hash_keys, repeated
from lakewarden.engine.read.merge.row_changes import RowChanges, changes_between
from lakewarden.engine.read.merge.slice_reader import KeyRows, SliceReader
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.change_logging import (
    AFTER,
    AT,
    BEFORE,
    LOGGED_KEY,
    OPERATION,
    LoggingMode,
    change_schema_text,
)
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.table.merge_rules import MergeMode, PartialMode
from lakewarden.engine.table.schema import RECORD_KEY
from lakewarden.engine.transaction.state.markers import MarkedFile
from lakewarden.engine.write.files.spec import (
    GroupTask,
    WriteSpec,
    constant,
    with_file_columns,
    with_own_columns,
    without_identity,
)


def log_records(rows: KeyedRows, spec: WriteSpec, task: GroupTask) -> pa.Table:
    """The records of a log; for their file they name the file group only."""
    kept = rows.take(np.flatnonzero(~rows.is_delete))
    own = with_own_columns(
        kept.rows if kept.rows.num_columns else spec.schema.columns.empty_table(),
        kept.keys,
        instant=spec.instant,
        task_number=task.number,
    )
    return with_file_columns(own, task.key.partition, task.key.file_id)


@dataclass(frozen=True, slots=True, eq=False)
class LogDeletes:
    """The deletes of a log: those that its records come after, and those that are the last word."""

    before: Deletes
    after: Deletes

    def __len__(self) -> int:
        return len(self.before) + len(self.after)


def log_deletes(rows: KeyedRows, spec: WriteSpec, task: GroupTask) -> LogDeletes:
    """The keys to delete; those without a real ordering value go whatever came before."""
    is_followed = _are_followed(rows)
    before, after = (
        _deletes(rows.take(np.flatnonzero(chosen)), spec, task)
        for chosen in (rows.is_delete & is_followed, rows.is_delete & ~is_followed)
    )
    return LogDeletes(before, after)


def _are_followed(rows: KeyedRows) -> npt.NDArray[np.bool_]:
    """Which rows have another one of their key behind them."""
    followed = np.zeros(len(rows), dtype=bool)
    if rows.is_delete.any() and len(repeated(hash_keys(rows.keys))):
        codes = rows.keys.dictionary_encode().indices.to_numpy()
        last = np.zeros(len(rows), dtype=np.int64)
        # With repeated indices the last assignment stays.
        last[codes] = np.arange(len(rows))
        followed = last[codes] > np.arange(len(rows))
    return followed


def _deletes(gone: KeyedRows, spec: WriteSpec, task: GroupTask) -> Deletes:
    partitions = constant(task.key.partition, len(gone))
    conditional = ~gone.is_unconditional & (spec.rules.mode is MergeMode.EVENT_TIME)
    if not conditional.any() or not spec.rules.ordering_fields:
        return Deletes(gone.keys, partitions, (), np.ones(len(gone), dtype=bool))
    ordering = tuple(column.combine_chunks() for column in spec.rules.ordering(gone.rows))
    return Deletes(gone.keys, partitions, ordering, ~conditional)


def store_log(
    storage: Storage,
    path: str,
    records: pa.Table,
    deletes: LogDeletes,
    spec: WriteSpec,
    *,
    compacted: tuple[str, ...] = (),
) -> int:
    """Write a log file; gives its size in bytes.

    With instants that it compacts it takes the place of their blocks, and has a block in any case.
    """
    origin = BlockOrigin(spec.instant, spec.records_text, compacted)
    if spec.has_virtual_keys:
        records = without_identity(records)
    with storage.create(path) as stream:
        for block in _blocks(records, deletes, spec, origin):
            stream.write(block)
        size_bytes: int = stream.tell()
    return size_bytes


def _blocks(
    records: pa.Table, deletes: LogDeletes, spec: WriteSpec, origin: BlockOrigin
) -> Iterator[bytes]:
    if len(deletes.before):
        yield delete_block(deletes.before, origin)
    if len(records) and spec.files.has_parquet_logs:
        yield parquet_block(records, origin)
    elif len(records):
        yield from avro_blocks(records, origin, bytes_max=spec.files.log_block_bytes)
    if len(deletes.after) or (origin.compacted_instants and not len(records)):
        yield delete_block(deletes.after, origin)


_FEW_KEYS = 64


@dataclass(frozen=True, slots=True, eq=False)
class KeyChanges:
    """Keys that came to live in a file group, keys that it lost, and what became of values."""

    arrived: pa.StringArray
    left: pa.StringArray
    valued: tuple[ValueChange, ...] = ()


def key_changes(
    storage: Storage,
    spec: WriteSpec,
    slice_: FileSlice,
    keys: pa.StringArray,
    records: pa.Table,
    deleted: LogDeletes,
) -> KeyChanges:
    """What a new log on top of a slice does to some keys; the log's content is given."""
    distinct = keys.unique()
    columns = dict.fromkeys((RECORD_KEY, *spec.indexes.value_columns))
    # For few keys it pays to look where they are before anything else is read.
    few = distinct if len(distinct) <= _FEW_KEYS else None
    reader = SliceReader(storage, replace(spec.read, columns=tuple(columns), keys=few))
    said = [*_as_read(deleted.before, spec), records, *_as_read(deleted.after, spec)]
    before, after = reader.versions(slice_, KeyIndex(distinct), said)
    lived, lives = (_living(one, len(distinct)) for one in (before, after))
    return KeyChanges(
        distinct.filter(pa.array(lives & ~lived)),
        distinct.filter(pa.array(lived & ~lives)),
        value_changes(spec.indexes.secondary, before.rows, after.rows),
    )


def _as_read(deleted: Deletes, spec: WriteSpec) -> Iterator[Deletes]:
    """Deletes as readers find them: on disk an ordering value of 0 is none."""
    if len(deleted):
        content = delete_block(deleted, BlockOrigin(spec.instant))
        yield from map(deletes, read_blocks(content, "a new log"))


def _living(version: KeyRows, count: int) -> np.ndarray:
    """Which of the keys have a row."""
    living = np.zeros(count, dtype=bool)
    living[version.places] = True
    return living


class ValueWatch:
    """Gathers the indexed values of rows on their way into a new base file, before and after."""

    def __init__(self, indexes: tuple[SecondaryIndex, ...]) -> None:
        self._indexes = indexes
        self._columns = [RECORD_KEY, *dict.fromkeys(one.column for one in indexes)]
        self._before: list[pa.Table] = []
        self._after: list[pa.Table] = []

    def before(self, rows: pa.Table) -> None:
        self._before.append(written_out(rows.select(self._columns)))

    def after(self, rows: pa.Table) -> None:
        self._after.append(written_out(rows.select(self._columns)))

    def changes(self) -> tuple[ValueChange, ...]:
        """What the indexes have to learn; complete after the last row."""
        return value_changes(self._indexes, together(self._before), together(self._after))


def written_out(rows: pa.Table) -> pa.Table:
    """Rows without dictionaries, which differ from batch to batch."""
    columns = [
        one.cast(one.type.value_type) if pa.types.is_dictionary(one.type) else one
        for one in rows.columns
    ]
    return pa.table(columns, names=rows.column_names)


def together(parts: list[pa.Table]) -> pa.Table | None:
    """Parts as one table, if there are any."""
    return pa.concat_tables(parts) if parts else None


LOG_VERSION = 1


def log_name(key: FileGroupId, spec: WriteSpec, task_number: int) -> str:
    """The name of the log that a task makes for a file group."""
    return f".{key.file_id}_{spec.instant}.log.{LOG_VERSION}_{spec.write_token(task_number)}"


def new_change_log(key: FileGroupId, spec: WriteSpec, task_number: int) -> MarkedFile:
    """The place and name of the log of change data that a task is going to make."""
    return MarkedFile(key.partition, log_name(key, spec, task_number) + CDC_SUFFIX)


class RowCapture:
    """Gathers rows on their way into a new base file whose keys the write knows, as they were and
    as they become."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._before: list[pa.Table] = []
        self._after: list[pa.Table] = []

    def before(self, rows: pa.Table) -> None:
        self._before.append(written_out(rows))

    def after(self, rows: pa.Table) -> None:
        self._after.append(written_out(rows))

    def changes(self, spec: WriteSpec) -> RowChanges:
        """What the write did; complete after the last row."""
        before, after = (
            self._schema.empty_table() if parts is None else parts
            for parts in map(together, (self._before, self._after))
        )
        fills = spec.rules.partial is not PartialMode.NONE
        return changes_between(before, after, spec.instant, fills=fills)


def store_changes(
    storage: Storage, target: MarkedFile, changes: RowChanges, spec: WriteSpec, mode: LoggingMode
) -> NewFile:
    """Write a log of change data."""
    columns = {
        OPERATION: lambda: changes.operations,
        AT: lambda: pa.repeat(pa.scalar(spec.instant, pa.string()), len(changes.operations)),
        LOGGED_KEY: lambda: changes.keys,
        BEFORE: lambda: _images(changes.before, changes.has_before, spec),
        AFTER: lambda: _images(changes.after, changes.has_after, spec),
    }
    rows = pa.table({name: columns[name]() for name in mode.columns})
    origin = BlockOrigin(spec.instant, change_schema_text(mode, spec.schema.avro_text or ""))
    with storage.create(target.path) as stream:
        for block in change_blocks(rows, origin, bytes_max=spec.files.log_block_bytes):
            stream.write(block)
        size_bytes: int = stream.tell()
    return NewFile(target.partition, target.name, size_bytes)


def _images(rows: pa.Table, is_there: pa.Array, spec: WriteSpec) -> pa.StructArray:
    """Rows as records of the table, without meta columns; null where there is none."""
    if spec.key_column is not None:
        rows = rows.append_column(spec.key_column, rows.column(RECORD_KEY))
    columns = [rows.column(name).combine_chunks() for name in spec.schema.columns.names]
    fields = [
        field.with_type(column.type)
        for field, column in zip(spec.schema.columns, columns, strict=True)
    ]
    is_gone = pa.array([not one for one in is_there.to_pylist()], pa.bool_())
    return pa.StructArray.from_arrays(columns, fields=fields, mask=is_gone)
