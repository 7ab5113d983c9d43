"""Keyed rows: what a caller wants to write, with the record key and partition path of each row."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass(frozen=True, slots=True, eq=False)
class KeyedRows:
    """Rows in the table's schema (no meta columns), in the order given; keys may repeat.

    `rows` has no columns when the caller gave only keys to delete. `is_delete` says which rows
    delete their key; `is_unconditional` which of those do so whatever the ordering values say.
    """

    rows: pa.Table
    keys: pa.StringArray
    # Dictionary-encoded: int32 codes into the distinct partition paths.
    partitions: pa.DictionaryArray
    is_delete: npt.NDArray[np.bool_]
    is_unconditional: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.keys)

    def partition_paths(self) -> tuple[str, ...]:
        """The distinct partition paths, sorted."""
        return tuple(sorted(self.partitions.dictionary.to_pylist()))

    def take(self, places: npt.NDArray[np.int64]) -> "KeyedRows":
        if _are_neighbours(places):
            first = int(places[0]) if len(places) else 0
            return self._between(first, len(places))
        indices = pa.array(places)
        return KeyedRows(
            self.rows.take(indices),
            self.keys.take(indices),
            self.partitions.take(indices),
            self.is_delete[places],
            self.is_unconditional[places],
        )

    def followed_by(self, more: "KeyedRows") -> "KeyedRows":
        """These rows, and then others; rows without columns have nulls in those of the others."""
        mine = self.rows
        if not mine.num_columns:
            schema = more.rows.schema
            mine = pa.table([pa.nulls(len(self), one.type) for one in schema], schema=schema)
        paths = pa.chunked_array([self.partitions, more.partitions]).unify_dictionaries()
        return KeyedRows(
            pa.concat_tables([mine, more.rows]).combine_chunks(),
            pa.concat_arrays([self.keys, more.keys]),
            paths.combine_chunks(),
            np.concatenate([self.is_delete, more.is_delete]),
            np.concatenate([self.is_unconditional, more.is_unconditional]),
        )

    def _between(self, first: int, count: int) -> "KeyedRows":
        """Rows that stand side by side, without copying them."""
        chosen = slice(first, first + count)
        return KeyedRows(
            self.rows.slice(first, count),
            self.keys.slice(first, count),
            self.partitions.slice(first, count),
            self.is_delete[chosen],
            self.is_unconditional[chosen],
        )


def _are_neighbours(places: npt.NDArray[np.int64]) -> bool:
    """Whether the places go up by one, as those of rows that keep their order do."""
    if not len(places):
        return True
    return int(places[-1] - places[0]) == len(places) - 1 and bool((np.diff(places) == 1).all())
