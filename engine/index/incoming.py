"""Incoming keys: the rows of a write by partition, and their keys without repetition.

Matches: which file groups already have the keys that are about to be written.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.read.merge.key_index import hash_keys, repeated
from lakewarden.engine.table.keygen.key_scheme import KeyedRows

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


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Pairs of a row and a slice that has the row's key, sorted by row.

    A row without a pair is new. A row has several pairs when plain inserts have left its key in
    several file groups; all of them are updated then. `slices` may hold ones without any pair.
    """

    rows: npt.NDArray[np.int64]
    # For each pair the place of the slice in `slices`.
    at: npt.NDArray[np.int32]
    slices: tuple[FileSlice, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, pairs: npt.NDArray[np.bool_]) -> "Matches":
        """The pairs that a mask chooses."""
        return Matches(self.rows[pairs], self.at[pairs], self.slices)


def no_matches() -> Matches:
    return Matches(np.zeros(0, np.int64), np.zeros(0, np.int32), ())


def are_elsewhere(rows: KeyedRows, matches: Matches) -> npt.NDArray[np.bool_]:
    """Which pairs are of a row and a slice of another partition."""
    paths = rows.partitions.dictionary.to_pylist()
    number_of = {path: number for number, path in enumerate(paths)}
    theirs = np.array([number_of.get(slice_.partition, -1) for slice_ in matches.slices], np.int64)
    mine = rows.partitions.indices.to_numpy(zero_copy_only=False)[matches.rows]
    return np.asarray(mine != theirs[matches.at]) if len(matches) else np.zeros(0, np.bool_)


def joined_matches(first: Matches, second: Matches) -> Matches:
    """The pairs of both, which may know the same slices."""
    slices = {slice_.key: slice_ for slice_ in (*first.slices, *second.slices)}
    place_of = {key: place for place, key in enumerate(slices)}
    rows_of: list[npt.NDArray[np.int64]] = [np.zeros(0, np.int64)] * len(slices)
    for matches in (first, second):
        for at, slice_ in enumerate(matches.slices):
            place = place_of[slice_.key]
            rows_of[place] = np.union1d(rows_of[place], matches.rows[matches.at == at])
    return matches_by_slice(rows_of, tuple(slices.values()))


def matches_by_slice(rows: Sequence[npt.NDArray[np.int64]], slices: Sequence[FileSlice]) -> Matches:
    """Matches from the rows that each of the slices has the keys of."""
    counts = [len(part) for part in rows]
    at = np.repeat(np.arange(len(slices), dtype=np.int32), counts)
    places = np.concatenate([np.zeros(0, np.int64), *rows])
    order = np.lexsort((at, places))
    return Matches(places[order], at[order], tuple(slices))
