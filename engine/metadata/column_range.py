"""Column ranges: bounds and null counts of a column in a file, and when they can be trusted."""

import math
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

# Java orders text by UTF-16 units, Arrow by bytes; the two agree on text below the surrogates.
_FIRST_SURROGATE = "\ud800"


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """The values of one column: bounds (None when all are null or there are none) and counts."""

    minimum: pa.Scalar | None
    maximum: pa.Scalar | None
    null_count: int
    value_count: int

    @property
    def is_all_null(self) -> bool:
        return self.minimum is None and self.null_count == self.value_count

    @property
    def is_unknown(self) -> bool:
        return self.minimum is None and self.null_count != self.value_count

    def union(self, other: "ColumnRange") -> "ColumnRange":
        """The range of both together; unknown when the two were written with unlike types."""
        null_count = self.null_count + other.null_count
        value_count = self.value_count + other.value_count
        if self.is_all_null or other.is_all_null:
            bounds = other if self.is_all_null else self
            return ColumnRange(bounds.minimum, bounds.maximum, null_count, value_count)
        if self.is_unknown or other.is_unknown or self._type != other._type:
            return ColumnRange(None, None, null_count, value_count)
        lows = pa.array([self.minimum, other.minimum], type=self._type)
        highs = pa.array([self.maximum, other.maximum], type=self._type)
        return ColumnRange(pc.min(lows), pc.max(highs), null_count, value_count)

    @property
    def _type(self) -> pa.DataType:
        assert self.minimum is not None
        return self.minimum.type

    def bounds(self, type_: pa.DataType) -> tuple[pa.Scalar, pa.Scalar] | None:
        """The bounds in a column's type, or None where they can't be trusted."""
        if self.minimum is None or self.maximum is None or not _keeps_order(self._type, type_):
            return None
        if not _is_trusted(self.minimum) or not _is_trusted(self.maximum):
            return None
        try:
            return self.minimum.cast(type_), self.maximum.cast(type_)
        except pa.ArrowInvalid:
            return None


def _keeps_order(written: pa.DataType, read: pa.DataType) -> bool:
    if written == read:
        return True
    if pa.types.is_integer(written):
        return bool(pa.types.is_integer(read) or pa.types.is_floating(read))
    same_family = (
        (pa.types.is_floating, pa.types.is_floating),
        (pa.types.is_decimal, pa.types.is_decimal),
        (pa.types.is_timestamp, pa.types.is_timestamp),
    )
    return any(was(written) and becomes(read) for was, becomes in same_family)


def _is_trusted(bound: pa.Scalar) -> bool:
    value = bound.as_py()
    if isinstance(value, float):
        # Java writes 0.0 as both bounds of a column with a NaN, and such a zero survives merging.
        return not math.isnan(value) and value != 0.0
    if isinstance(value, str):
        return all(character < _FIRST_SURROGATE for character in value)
    return True
