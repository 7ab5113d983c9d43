"""Ordering values in a form that compares fast, by the rules Java compares them by.

Numbers, dates and timestamps compare as numbers, text and bytes by their bytes. A double's NaN is
larger than everything and equal to itself, and -0.0 is smaller than 0.0. A missing value counts as
the zero of its type (0, the epoch, the empty text), for Java's default ordering value is 0.
Several ordering fields compare from left to right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.kernel.errors import InvalidRequest

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
        sortables.extend(_sortables(_whole(column)))
    return OrderingValues(tuple(sortables), length)


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
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
