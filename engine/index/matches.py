"""Matches: which file groups already have the keys that are about to be written."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lakewarden.engine.view.slices import FileSlice


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


def matches_by_slice(rows: Sequence[npt.NDArray[np.int64]], slices: Sequence[FileSlice]) -> Matches:
    """Matches from the rows that each of the slices has the keys of."""
    counts = [len(part) for part in rows]
    at = np.repeat(np.arange(len(slices), dtype=np.int32), counts)
    places = np.concatenate([np.zeros(0, np.int64), *rows])
    order = np.lexsort((at, places))
    return Matches(places[order], at[order], tuple(slices))


def united(first: Matches, second: Matches) -> Matches:
    """The pairs of both, each once."""
    slices = {slice_.key: slice_ for slice_ in (*first.slices, *second.slices)}
    numbers = {key: number for number, key in enumerate(slices)}
    pairs = [
        np.stack(
            [np.array([numbers[one.key] for one in some.slices], np.int64)[some.at], some.rows]
        )
        for some in (first, second)
        if len(some)
    ]
    both = np.unique(np.concatenate([np.zeros((2, 0), np.int64), *pairs], axis=1), axis=1)
    rows = [both[1][both[0] == number] for number in range(len(slices))]
    return matches_by_slice(rows, tuple(slices.values()))
