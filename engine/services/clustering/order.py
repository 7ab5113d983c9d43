"""Orders: in which order the rows of a group are written, by columns or along a curve."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.octets import octets_of
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.services.clustering.settings import LayoutStrategy

# More ranges than this hardly put rows into another row group.
BITS_MAX = 16
COLUMNS_MAX = 16
_BITS = 64
_WORD = 8
_OCTET = 0xFF
# Where rows without a value go.
_NOWHERE = np.uint64(0)

Codes = npt.NDArray[np.uint64]


def curve_positions(columns: Sequence[pa.Array], layout: LayoutStrategy, sample_size: int) -> Codes:
    """The place of each row on the curve through some columns."""
    if not 0 < len(columns) <= COLUMNS_MAX:
        raise InvalidRequest(
            "too_many_sort_columns",
            what=f"A sort curve cannot have {len(columns)} columns.",
            why=f"It takes 1 to {COLUMNS_MAX}; with more, no column would narrow a read.",
            now="Sort by fewer columns.",
        )
    bits = min(BITS_MAX, _BITS // len(columns))
    codes = [_ranges(sortable(column), column, bits, sample_size) for column in columns]
    if layout is LayoutStrategy.HILBERT:
        codes = _along_hilbert(codes, bits)
    return _interleaved(codes, bits)


def sortable(column: pa.Array) -> Codes:
    """Numbers that are ordered as the values are; of texts, the eight bytes behind what all share.

    Null becomes 0.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return sortable(column.cast(kind.value_type))
    if pa.types.is_floating(kind):
        return _of_floats(column)
    if pa.types.is_decimal(kind):
        return _of_floats(column.cast(pa.float64()))
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind):
        return _of_texts(column.cast(pa.large_binary()))
    return _of_integers(column)


def _of_integers(column: pa.Array) -> Codes:
    kind = column.type
    if pa.types.is_boolean(kind):
        plain = column.cast(pa.int8())
    elif pa.types.is_date32(kind) or pa.types.is_time32(kind):
        plain = column.cast(pa.int32())
    elif pa.types.is_temporal(kind):
        plain = column.cast(pa.int64())
    else:
        plain = column
    if not pa.types.is_integer(plain.type):
        raise InvalidRequest(
            "unsortable_column",
            what=f"Lakewarden cannot sort along a curve by a column of type {kind}.",
            why="Its values have no order, or none that a number can express.",
            now="Sort by other columns.",
        )
    values = plain.cast(pa.int64()).fill_null(np.iinfo(np.int64).min).to_numpy(zero_copy_only=False)
    turned: Codes = values.view(np.uint64) ^ np.uint64(1 << 63)
    return turned


def _of_floats(column: pa.Array) -> Codes:
    """The bits of a float, turned so that they order as the number does; NaN is the largest."""
    values = column.cast(pa.float64()).fill_null(-np.inf).to_numpy(zero_copy_only=False)
    bits = np.ascontiguousarray(np.where(np.isnan(values), np.inf, values)).view(np.uint64)
    is_negative = bits >> np.uint64(63) == 1
    return np.where(is_negative, ~bits, bits | np.uint64(1 << 63))


def _of_texts(column: pa.LargeBinaryArray) -> Codes:
    octets, bounds = octets_of(column.fill_null(b""))
    starts, ends = bounds[:-1], bounds[1:]
    starts = np.minimum(starts + _shared(column), ends)
    found = np.zeros(len(column), np.uint64)
    for place in range(_WORD):
        at = starts + place
        is_there = at < ends
        octet = np.zeros(len(column), np.uint64)
        octet[is_there] = octets[at[is_there]]
        found |= octet << np.uint64(_BITS - _WORD * (place + 1))
    return found


def _shared(column: pa.LargeBinaryArray) -> int:
    """How many bytes at the beginning are the same in all values."""
    bounds = pc.min_max(column)
    low, high = bounds["min"].as_py() or b"", bounds["max"].as_py() or b""
    for place, (one, other) in enumerate(zip(low, high, strict=False)):
        if one != other:
            return place
    return min(len(low), len(high))


def _ranges(values: Codes, column: pa.Array, bits: int, sample_size: int) -> Codes:
    """The number of the range in which each value is; ranges hold about as many rows each."""
    step = max(len(values) // max(sample_size, 1), 1)
    sample = np.sort(values[::step])
    count = (1 << bits) - 1
    places = np.linspace(0, len(sample) - 1, count + 2)[1:-1].astype(np.int64)
    borders = np.unique(sample[places]) if len(sample) else sample
    found = np.searchsorted(borders, values, side="right").astype(np.uint64)
    # Few distinct values would otherwise take the low bits only, and hardly count.
    spread = (1 << bits) // (len(borders) + 1)
    found *= np.uint64(max(spread, 1))
    if column.null_count:
        found[np.asarray(column.is_null())] = _NOWHERE
    return found


def _interleaved(codes: Sequence[Codes], bits: int) -> Codes:
    """The bits of all columns side by side, the first column's first."""
    count = len(codes)
    spread = _spread(count)
    found = np.zeros(len(codes[0]), np.uint64)
    for place, code in enumerate(codes):
        for first in range(0, bits, _WORD):
            octet = (code >> np.uint64(first)) & np.uint64(_OCTET)
            shift = np.uint64(first * count + count - 1 - place)
            found |= spread[octet.astype(np.intp)] << shift
    return found


def _spread(count: int) -> Codes:
    """For each byte its bits, so many places from each other."""
    octets = np.arange(1 << _WORD, dtype=np.uint64)
    found = np.zeros(len(octets), np.uint64)
    for bit in range(_WORD):
        if bit * count < _BITS:
            found |= ((octets >> np.uint64(bit)) & np.uint64(1)) << np.uint64(bit * count)
    return found


def _along_hilbert(codes: Sequence[Codes], bits: int) -> list[Codes]:
    """Coordinates turned so that their bits side by side count along a Hilbert curve.

    This is Skilling's transformation ("Programming the Hilbert curve", 2004), for all rows at once.
    """
    axes = [code.copy() for code in codes]
    for bit in range(bits - 1, 0, -1):
        high, low = np.uint64(1 << bit), np.uint64((1 << bit) - 1)
        for axis in axes:
            is_set = (axis & high) != 0
            swapped = np.where(is_set, np.uint64(0), (axes[0] ^ axis) & low)
            axes[0] ^= np.where(is_set, low, swapped)
            if axis is not axes[0]:
                axis ^= swapped
    for place in range(1, len(axes)):
        axes[place] ^= axes[place - 1]
    turn = np.zeros(len(axes[0]), np.uint64)
    for bit in range(bits - 1, 0, -1):
        is_set = (axes[-1] & np.uint64(1 << bit)) != 0
        turn ^= np.where(is_set, np.uint64((1 << bit) - 1), np.uint64(0))
    return [axis ^ turn for axis in axes]


Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RowOrder:
    """The columns to sort by, and how; without columns rows stay as they are."""

    columns: tuple[str, ...] = ()
    layout: LayoutStrategy = LayoutStrategy.LINEAR
    sample_size: int = 0

    @property
    def is_sorted(self) -> bool:
        return bool(self.columns)

    def places(self, rows: pa.Table) -> Places:
        """The rows' numbers in the order in which they are to be written; equals keep theirs.

        Rows without a value come first.
        """
        rows = plain(rows.select(list(self.columns)))
        if self.layout is LayoutStrategy.LINEAR or len(self.columns) == 1:
            return _in_lines(rows, self.columns)
        columns = [_whole(rows.column(name)) for name in self.columns]
        positions = curve_positions(columns, self.layout, self.sample_size)
        return np.argsort(positions, kind="stable")


def plain(rows: pa.Table, names: Collection[str] | None = None) -> pa.Table:
    """Rows with some of their columns, or all, written out where they are dictionaries."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type) and (names is None or field.name in names):
            kind = field.type.value_type
            rows = rows.set_column(place, field.with_type(kind), rows.column(place).cast(kind))
    return rows


def _in_lines(rows: pa.Table, columns: tuple[str, ...]) -> Places:
    """By the first column, equals by the second, and so on."""
    keys: dict[str, pa.ChunkedArray] = {}
    for number, name in enumerate(columns):
        column = rows.column(name)
        if column.null_count:
            keys[f"is valid {number}"] = column.is_valid()
        keys[f"value {number}"] = column
    found = pc.sort_indices(pa.table(keys), sort_keys=[(key, "ascending") for key in keys])
    return np.asarray(found).astype(np.int64)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole
