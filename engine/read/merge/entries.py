"""Log entries: all records and deletes of a file slice's logs, side by side in log order.

Ordering values in a form that compares fast, by the rules Java compares them by.

Numbers, dates and timestamps compare as numbers, text and bytes by their bytes. A double's NaN is
larger than everything and equal to itself, and -0.0 is smaller than 0.0. A missing value counts as
the zero of its type (0, the epoch, the empty text), for Java's default ordering value is 0.
Several ordering fields compare from left to right.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.log.deletes import Deletes
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.read.merge.spec import marked_deleted
from lakewarden.engine.table.merge_rules import MergeRules

# Numbers as int64 in the order of the values they stand for; text and bytes as Arrow binary.
Sortable: TypeAlias = np.ndarray | pa.Array


@dataclass(frozen=True, slots=True)
class OrderingValues:
    """The ordering values of `length` records, one sortable column or more per ordering field."""

    columns: tuple[Sortable, ...]
    length: int

    def take(self, positions: np.ndarray) -> "OrderingValues":
        columns = tuple(
            column[positions] if isinstance(column, np.ndarray) else column.take(positions)
            for column in self.columns
        )
        return OrderingValues(columns, len(positions))

    def followed_by(self, more: "OrderingValues") -> "OrderingValues":
        """These values, and then those of other records of the same fields."""
        columns = tuple(
            np.concatenate([first, second])
            if isinstance(first, np.ndarray)
            else pa.concat_arrays([first, second])
            for first, second in zip(self.columns, more.columns, strict=True)
        )
        return OrderingValues(columns, self.length + more.length)

    def ranks(self) -> np.ndarray:
        """Small numbers from 0 on in the order of the values; equal values share one."""
        ranks = np.zeros(self.length, dtype=np.int64)
        for column in self.columns:
            own = _dense_ranks(column)
            # Both factors are at most the number of records, so the product cannot overflow.
            _, ranks = np.unique(ranks * (own.max(initial=0) + 1) + own, return_inverse=True)
        return ranks

    def are_at_least(self, others: "OrderingValues") -> np.ndarray:
        """For each pair of records in turn, whether this one's value is not the smaller one."""
        assert self.length == others.length
        result = np.ones(self.length, dtype=bool)
        for mine, theirs in reversed(list(zip(self.columns, others.columns, strict=True))):
            if isinstance(mine, np.ndarray):
                result = (mine > theirs) | ((mine == theirs) & result)
            else:
                result = _mask(pc.greater(mine, theirs)) | (_mask(pc.equal(mine, theirs)) & result)
        return result


def ordering_values(columns: Sequence[pa.Array | pa.ChunkedArray], length: int) -> OrderingValues:
    """The values of some records' ordering fields, given as Arrow columns of equal length."""
    sortables: list[Sortable] = []
    for column in columns:
        sortables.extend(_sortables(_plain_column(column)))
    return OrderingValues(tuple(sortables), length)


def _plain_column(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _sortables(column: pa.Array) -> list[Sortable]:
    kind = column.type
    if pa.types.is_floating(kind):
        return [_float_order(_numbers(column.cast(pa.float64()), 0.0))]
    if pa.types.is_decimal128(kind):
        return _decimal_order(column)
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return [_numbers(column.cast(pa.int32()).cast(pa.int64()), 0)]
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind):
        return [_numbers(column.cast(pa.int64()), 0)]
    if pa.types.is_large_string(kind) or pa.types.is_string(kind):
        return [column.cast(pa.large_string()).cast(pa.large_binary()).fill_null(b"")]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [column.cast(pa.large_binary()).fill_null(b"")]
    raise InvalidRequest(
        "unsupported_ordering_type",
        what=f"An ordering field has the type {kind}.",
        why="Only numbers, text, bytes, dates and times order records.",
        now="Order by another column, or read the table with the engine that wrote it.",
        type=str(kind),
    )


def _numbers(column: pa.Array, zero: int | float) -> np.ndarray:
    filled = column.fill_null(zero) if column.null_count else column
    return np.asarray(filled.to_numpy(zero_copy_only=False))


def _float_order(values: np.ndarray) -> np.ndarray:
    # All NaN have one bit pattern in Java; the pattern of this one is above that of infinity.
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    # The bits of negative numbers grow with their magnitude: turn them round, below all others.
    return np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)


def _decimal_order(column: pa.Array) -> list[Sortable]:
    filled = column.fill_null(pa.scalar(0, pa.decimal128(1)).cast(column.type))
    halves = np.frombuffer(filled.buffers()[1], dtype=np.int64).reshape(-1, 2)
    halves = halves[filled.offset : filled.offset + len(filled)]
    # The lower half is unsigned; turning its top bit makes signed comparison do the same.
    return [halves[:, 1], halves[:, 0] ^ np.int64(-(2**63))]


def _dense_ranks(column: Sortable) -> np.ndarray:
    if isinstance(column, np.ndarray):
        return np.asarray(np.unique(column, return_inverse=True)[1])
    ranks = pc.rank(column, sort_keys="ascending", tiebreaker="dense")
    return np.asarray(ranks.to_numpy(), dtype=np.int64) - 1


def _mask(booleans: pa.Array) -> np.ndarray:
    return np.asarray(booleans.to_numpy(zero_copy_only=False), dtype=bool)


RECORD_KEY_FIELD = "_hoodie_record_key"
KEY_TYPE = pa.string()
# The row of an entry that has none: a delete that names only a key.
NO_ROW = -1


@dataclass(frozen=True, slots=True)
class Records:
    """The records of one data block in the reader's types: whole ones, or only changed columns.

    `keys` is given where the records' own key column is not filled.
    """

    table: pa.Table
    is_partial: bool = False
    keys: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class LogEntries:
    """One entry per record or delete; `rows` leads from an entry to its record.

    `present` says, for each column that some record does not have, which records have it. From
    the entry `partial_from` on there may be records that have only some columns.
    """

    keys: pa.Array
    rows: np.ndarray
    is_delete: np.ndarray
    # Deletes without a real ordering value: they remove whatever came before them.
    is_unconditional: np.ndarray
    ordering: OrderingValues
    records: pa.Table
    present: Mapping[str, np.ndarray]
    partial_from: int

    def __len__(self) -> int:
        return len(self.keys)

    def between(self, start: int, end: int) -> "LogEntries":
        """The entries from one to before another, over the same records."""
        chosen = slice(start, end)
        return LogEntries(
            self.keys.slice(start, end - start),
            self.rows[chosen],
            self.is_delete[chosen],
            self.is_unconditional[chosen],
            self.ordering.take(np.arange(start, end)),
            self.records,
            self.present,
            min(max(self.partial_from - start, 0), end - start),
        )


@dataclass(frozen=True, slots=True)
class _Piece:
    """The entries of one block, before they are lined up with those of the others."""

    keys: pa.Array
    is_delete: np.ndarray
    is_unconditional: np.ndarray
    # One array per ordering field.
    ordering: tuple[pa.Array, ...]
    table: pa.Table | None


def log_entries(
    parts: Iterable[Records | Deletes], schema: pa.Schema, rules: MergeRules
) -> LogEntries:
    """Line up the contents of log blocks, given in log order, in the reader's schema."""
    parts = list(parts)
    pieces = [_piece(part, schema, rules) for part in parts]
    keys = pa.concat_arrays([pa.array([], KEY_TYPE), *(piece.keys for piece in pieces)])
    ordering = ordering_values(_ordering_columns(pieces, schema, rules), len(keys))
    rows = _rows(pieces)
    is_delete = _joined([piece.is_delete for piece in pieces])
    is_unconditional = _joined([piece.is_unconditional for piece in pieces])
    present = _present([part for part in parts if isinstance(part, Records)], schema)
    partial_from = _partial_from(parts)
    tables = [piece.table for piece in pieces if piece.table is not None]
    del parts, pieces
    records = _put_together(tables, schema)
    return LogEntries(
        keys, rows, is_delete, is_unconditional, ordering, records, present, partial_from
    )


def _put_together(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    """One table in one piece; memory holds each column twice, but never all of them.

    The list is empty afterwards.
    """
    waiting = [list(reversed(table.columns)) for table in tables]
    tables.clear()
    columns = []
    for field in schema:
        chunks = [chunk for own in waiting for chunk in own.pop().chunks if len(chunk)]
        column = pa.table([pa.chunked_array(chunks, field.type)], schema=pa.schema([field]))
        columns.append(column.combine_chunks().column(0))
    return pa.Table.from_arrays(columns, schema=schema)


def ordering_columns(
    parts: Sequence[Records | Deletes], schema: pa.Schema, rules: MergeRules
) -> tuple[pa.Array, ...]:
    """What the entries have in the ordering fields, in the types of these and in the same order.

    A delete that has no ordering value has nulls.
    """
    return _ordering_columns([_piece(part, schema, rules) for part in parts], schema, rules)


def _ordering_columns(
    pieces: Sequence[_Piece], schema: pa.Schema, rules: MergeRules
) -> tuple[pa.Array, ...]:
    return tuple(
        pa.concat_arrays([pa.array([], type_), *(piece.ordering[at] for piece in pieces)])
        for at, type_ in enumerate(rules.ordering_types(schema))
    )


def _piece(part: Records | Deletes, schema: pa.Schema, rules: MergeRules) -> _Piece:
    if isinstance(part, Records):
        return _record_piece(part, schema, rules)
    return _delete_piece(part, schema, rules)


def _record_piece(part: Records, schema: pa.Schema, rules: MergeRules) -> _Piece:
    table = _whole(part.table, schema)
    keys = table.column(RECORD_KEY_FIELD).combine_chunks() if part.keys is None else part.keys
    if keys.null_count:
        raise CorruptTable(
            "record_without_key",
            what="A log record has no record key.",
            why=f"Its {RECORD_KEY_FIELD} is empty, but the table stores meta columns.",
            now="Find out which writer left it, then restore the table to a savepoint.",
        )
    ordering = tuple(column.combine_chunks() for column in rules.ordering(table))
    deleted = marked_deleted(table, rules)
    return _Piece(
        keys.cast(KEY_TYPE), deleted, deleted & have_default_ordering(ordering), ordering, table
    )


def have_default_ordering(ordering: Sequence[pa.Array]) -> np.ndarray | bool:
    """Which records have the ordering value that Java takes for none: the 32-bit integer 0."""
    if not ordering:
        return True
    if len(ordering) > 1:
        # A tuple is never that value, even if all of its parts are.
        return False
    (column,) = ordering
    default = column.is_null()
    if pa.types.is_int32(column.type):
        default = column.fill_null(0).to_numpy() == 0
    return np.asarray(default, dtype=bool)


def _delete_piece(deletes: Deletes, schema: pa.Schema, rules: MergeRules) -> _Piece:
    types = rules.ordering_types(schema)
    if not deletes.ordering:
        ordering = tuple(pa.nulls(len(deletes), kind) for kind in types)
    elif len(deletes.ordering) == len(types):
        ordering = tuple(map(_as_field, deletes.ordering, types))
    else:
        found = f"{len(deletes.ordering)} ordering values"
        raise _unsupported_delete(found, f"{len(types)} ordering fields")
    everything = np.ones(len(deletes), dtype=bool)
    return _Piece(deletes.keys.cast(KEY_TYPE), everything, deletes.is_unconditional, ordering, None)


def _as_field(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A delete's ordering values in the field's type.

    Spark stores dates as days and timestamps as microseconds, whatever the column's unit.
    """
    try:
        if pa.types.is_integer(column.type) and pa.types.is_date32(kind):
            return column.cast(pa.int32()).cast(kind)
        if pa.types.is_integer(column.type) and pa.types.is_timestamp(kind):
            column = column.cast(pa.int64()).cast(pa.timestamp("us", kind.tz))
        return column.cast(kind, safe=not pa.types.is_timestamp(kind))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _unsupported_delete(f"ordering values of the type {column.type}", str(kind)) from None


def _unsupported_delete(found: str, wanted: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_delete_ordering",
        what=f"A delete block of the logs has {found} where the table has {wanted}.",
        why="The two types have no common order, so it is not known which records to delete.",
        now="Compact the table with the engine that wrote it.",
    )


def _whole(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table with nulls for the columns it does not have."""
    names = set(table.column_names)
    columns = [
        table.column(field.name)
        if field.name in names
        else pa.chunked_array([pa.nulls(len(table), field.type)])
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _rows(pieces: Sequence[_Piece]) -> np.ndarray:
    rows, start = [], 0
    for piece in pieces:
        if piece.table is None:
            rows.append(np.full(len(piece.keys), NO_ROW))
        else:
            rows.append(np.arange(start, start + len(piece.keys)))
            start += len(piece.keys)
    return np.concatenate([np.zeros(0, dtype=np.int64), *rows])


def _joined(flags: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, dtype=bool), *flags])


def _present(blocks: Sequence[Records], schema: pa.Schema) -> dict[str, np.ndarray]:
    # A whole record that lacks a column is older than the column: its value there is null.
    has = {
        name: [not block.is_partial or name in block.table.column_names for block in blocks]
        for name in schema.names
    }
    sizes = [len(block.table) for block in blocks]
    return {name: np.repeat(flags, sizes) for name, flags in has.items() if not all(flags)}


def _partial_from(parts: Sequence[Records | Deletes]) -> int:
    count = 0
    for part in parts:
        if isinstance(part, Records) and part.is_partial:
            break
        count += len(part.table) if isinstance(part, Records) else len(part)
    return count
