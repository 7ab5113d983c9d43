"""Incoming keys: the rows of a write by partition, and their keys without repetition."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.read.merge.key_hash import hash_keys, repeated
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class DistinctKeys:
    """The distinct keys of some rows, and for each of them the rows that have it."""

    keys: pa.Array
    _rows: Places
    # The rows of key n lie from the n-th start to before the next.
    _starts: Places
    # Of the keys, where they are known.
    hashes: npt.NDArray[np.uint64] | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def places_of(self, keys: pa.Array) -> Places:
        """Where some of the keys are among them."""
        return np.asarray(pc.index_in(keys, value_set=self.keys), np.int64)

    def counts(self, keys: Places) -> Places:
        """How many rows have each of some keys."""
        return self._starts[keys + 1] - self._starts[keys]

    def rows_of(self, keys: Places) -> Places:
        """The rows with some of the keys, in the order of the keys."""
        starts, counts = self._starts[keys], self.counts(keys)
        before = np.cumsum(counts) - counts
        return np.asarray(self._rows[np.repeat(starts - before, counts) + np.arange(counts.sum())])


def distinct_keys(keys: pa.Array, rows: Places) -> DistinctKeys:
    """The distinct keys of the given rows."""
    taken = keys.take(pa.array(rows))
    hashes = hash_keys(taken)
    if not len(repeated(hashes)):
        # The usual case; hashing is several times as fast as encoding.
        return DistinctKeys(taken, rows, np.arange(len(rows) + 1), hashes)
    encoded = taken.dictionary_encode()
    codes = encoded.indices.to_numpy()
    counts = np.bincount(codes, minlength=len(encoded.dictionary))
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return DistinctKeys(encoded.dictionary, rows[np.argsort(codes, kind="stable")], starts)


def rows_by_partition(rows: KeyedRows) -> dict[str, Places]:
    """The rows of each partition that has some, ascending; partitions are in their order."""
    codes = rows.partitions.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    used, firsts = np.unique(codes[order], return_index=True)
    paths = rows.partitions.dictionary.take(pa.array(used)).to_pylist()
    parts = np.split(order, firsts[1:]) if len(used) else []
    return dict(sorted(zip(paths, parts, strict=True), key=lambda item: str(item[0])))
