"""Matches: which file groups already have the keys that are about to be written."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows


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
