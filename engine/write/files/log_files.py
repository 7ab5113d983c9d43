"""Log files: a delta commit's changes to one file group, as blocks that Java reads as its own."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.formats.log.deletes import Deletes
from lakewarden.engine.formats.log.write import (
    BlockOrigin,
    avro_blocks,
    delete_block,
    parquet_block,
)
from lakewarden.engine.read.merge.key_hash import hash_keys, repeated
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows
from lakewarden.engine.table.merge_rules import MergeMode
from lakewarden.engine.write.files.meta_columns import (
    constant,
    with_file_columns,
    with_own_columns,
    without_identity,
)
from lakewarden.engine.write.files.spec import GroupTask, WriteSpec


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
