"""Living keys: where a key is in several file groups of a partition, which of them still have it.

A log that deletes a key leaves it in the base file. A key that was deleted and inserted anew is in
two file groups then; written to both, its row would be there twice.
"""

import numpy as np
import numpy.typing as npt

from lakewarden.engine.index.existing import ABSENT, ExistingReader
from lakewarden.engine.index.matches import Matches
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows


def without_dead(state: Snapshot, rows: KeyedRows, matches: Matches, executor: Executor) -> Matches:
    """The matches without file groups whose logs have deleted the key, if another one has it.

    Of several that have deleted it one is kept, so that the key comes back to where it was.
    """
    if not (matches.rows[1:] == matches.rows[:-1]).any():
        return matches
    places = _places(matches)
    _, place_of, counts = np.unique(places, return_inverse=True, return_counts=True)
    has_logs = np.array([bool(slice_.log_files) for slice_ in matches.slices], np.bool_)
    asked = np.flatnonzero((counts[place_of] > 1) & has_logs[matches.at])
    if not len(asked):
        return matches
    lives = np.ones(len(matches), np.bool_)
    lives[asked] = ExistingReader(state, ()).read(rows, matches, asked, executor).places != ABSENT
    is_known = np.zeros(len(counts), np.bool_)
    is_known[place_of[lives]] = True
    dead = np.flatnonzero(~lives & ~is_known[place_of])
    _, firsts = np.unique(place_of[dead], return_index=True)
    lives[dead[firsts]] = True
    return matches.only(lives)


def _places(matches: Matches) -> npt.NDArray[np.int64]:
    """For each pair a number that stands for its row and its slice's partition."""
    partitions = [slice_.partition for slice_ in matches.slices]
    numbers = {partition: number for number, partition in enumerate(dict.fromkeys(partitions))}
    number_of = np.array([numbers[partition] for partition in partitions], np.int64)
    return matches.rows * len(numbers) + number_of[matches.at]
