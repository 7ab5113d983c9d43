"""Orders: in which order the rows of a group are written."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.services.clustering.curves import curve_positions
from lakewarden.engine.services.clustering.settings import LayoutStrategy

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
