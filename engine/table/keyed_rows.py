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
        indices = pa.array(places)
        return KeyedRows(
            self.rows.take(indices),
            self.keys.take(indices),
            self.partitions.take(indices),
            self.is_delete[places],
            self.is_unconditional[places],
        )
