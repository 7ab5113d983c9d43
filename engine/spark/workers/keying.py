"""Keying in workers: what a plan has to know of rows that stay with Spark."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as kinds

from lakewarden.engine.read.merge.key_index import hash_keys
from lakewarden.engine.spark.workers.reports import Batches, packed_table, reported, unpacked_table
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.write.distributed_rows import PLACE, RowPreparation

if TYPE_CHECKING:
    from pyspark import TaskContext

KEY, PATH, IS_DELETE, IS_UNCONDITIONAL = ("key", "path", "is_delete", "is_unconditional")
_COLUMN = "column "
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class KeyedBatch:
    """What a plan has to know of one batch."""

    # The number of Spark's partition that it is from.
    part: int
    row_count: int
    unpacked_bytes: int
    packed: bytes


@dataclass(frozen=True, slots=True)
class Keying:
    """Fits rows where they are, and hands over keys, paths and what else plans decide by."""

    preparation: RowPreparation
    columns: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        return reported(lambda: self._described(batches))

    def _described(self, batches: Batches) -> Iterator[KeyedBatch]:
        part = task_context().partitionId()
        for batch in batches:
            if batch.num_rows:
                rows = self.preparation.fit(pa.Table.from_batches([batch]))
                size_bytes = rows.rows.nbytes + rows.keys.nbytes
                packed = packed_table(described(rows, self.columns))
                yield KeyedBatch(part, len(rows), size_bytes, packed)


def task_context() -> "TaskContext":
    """The task that this runs in; PySpark is there then, but need not be where this is imported."""
    context: TaskContext | None = import_module("pyspark").TaskContext.get()
    assert context is not None
    return context


def described(rows: KeyedRows, columns: Sequence[str]) -> pa.Table:
    """Rows as a table without the columns that do not matter for plans."""
    named = {f"{_COLUMN}{name}": rows.rows.column(name) for name in _known(rows, columns)}
    return pa.table(
        {
            KEY: rows.keys,
            PATH: rows.partitions,
            IS_DELETE: rows.is_delete,
            IS_UNCONDITIONAL: rows.is_unconditional,
            **named,
        }
    )


def keyed(packed: Sequence[bytes], empty: KeyedRows, columns: Sequence[str]) -> KeyedRows:
    """The rows of some batches; those of no batch are like the empty ones."""
    tables = [described(empty, columns), *map(unpacked_table, packed)]
    table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    kept = {
        name.removeprefix(_COLUMN): table.column(name)
        for name in table.column_names
        if name.startswith(_COLUMN)
    }
    has_columns = empty.rows.num_columns
    places = {PLACE: pa.array(np.arange(len(table)))} if has_columns else {}
    return KeyedRows(
        pa.table({**kept, **places}),
        _whole(table, KEY),
        cast(pa.DictionaryArray, _whole(table, PATH)),
        _whole(table, IS_DELETE).to_numpy(zero_copy_only=False),
        _whole(table, IS_UNCONDITIONAL).to_numpy(zero_copy_only=False),
    )


def row_hashes(rows: KeyedRows, columns: Sequence[str]) -> Hashes:
    """A hash of what a plan knows of each row, by which the row is known when it comes again."""
    hashes = hash_keys(rows.keys)
    paths = hash_keys(rows.partitions.dictionary)
    hashes = _mixed(hashes, paths[rows.partitions.indices.to_numpy()])
    for name in _known(rows, columns):
        hashes = _mixed(hashes, _value_hashes(rows.rows.column(name)))
    return hashes


def _value_hashes(values: pa.ChunkedArray) -> Hashes:
    type_ = values.type
    if kinds.is_date32(type_):
        values = values.cast(pa.int32())
    if kinds.is_integer(values.type) or kinds.is_timestamp(type_):
        numbers = values.cast(pa.int64()).fill_null(0).to_numpy()
        return np.asarray(numbers).view(np.uint64)
    texts = values.cast(pa.binary() if kinds.is_binary(type_) else pa.string()).fill_null("")
    return np.concatenate([np.zeros(0, np.uint64), *map(hash_keys, texts.chunks)])


def _mixed(hashes: Hashes, others: Hashes) -> Hashes:
    return np.asarray((hashes ^ others) * _MULTIPLIER)


def _known(rows: KeyedRows, columns: Sequence[str]) -> list[str]:
    return [name for name in columns if name in rows.rows.column_names]


def _whole(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)
