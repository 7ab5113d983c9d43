"""Routing: which file group takes which rows of a write.

Rows follow their keys; new ones fill small file groups, and the rest begins groups of its own. The
outcome depends on nothing but its inputs: the same rows and ids give the same groups.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.index.buckets import bucket_file_id, bucket_numbers
from lakewarden.engine.index.incoming import rows_by_partition
from lakewarden.engine.index.kinds import Buckets
from lakewarden.engine.index.matches import Matches, no_matches
from lakewarden.engine.kernel.ids import Ids
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows
from lakewarden.engine.write.files.group_work import GroupWork
from lakewarden.engine.write.routing.sizes import SizeLimits
from lakewarden.engine.write.routing.small_files import shares

Places = npt.NDArray[np.int64]

# Which of some keys a slice may not take in.
Refused = Callable[[FileSlice, pa.StringArray], npt.NDArray[np.bool_]]

_NONE = np.zeros(0, np.int64)
_NOTHING = no_matches()


@dataclass(frozen=True, slots=True)
class Routed:
    """Where the rows of a write go, and how many had nothing to do."""

    groups: tuple[GroupWork, ...]
    # Deletes of keys that the table does not have.
    vanished_count: int


def route(
    rows: KeyedRows,
    matches: Matches,
    candidates: Sequence[FileSlice],
    limits: SizeLimits,
    ids: Ids,
    *,
    departures: Matches = _NOTHING,
    buckets: Buckets | None = None,
    refused: Refused | None = None,
) -> Routed:
    """Divide rows among file groups.

    `candidates` are slices that may take in new rows, in any partition, but for the keys that they
    have `refused`; `departures` are pairs of a row and the slice that its key leaves for another
    partition.
    """
    updates, leaving = _by_slice(matches), _by_slice(departures)
    new = _NewRows(rows, new_rows(rows, matches), limits, ids)
    if buckets is not None:
        inserts, created = dict[FileGroupId, Places](), tuple(new.by_bucket(buckets))
    else:
        touched = frozenset(updates) | frozenset(leaving)
        inserts, left = new.into_small_files(candidates, touched, refused)
        created = tuple(new.in_files_of_their_own(left))
    slices = {slice_.key: slice_ for slice_ in (*candidates, *departures.slices, *matches.slices)}
    existing = tuple(
        GroupWork(
            key,
            slices[key],
            updates.get(key, _NONE),
            inserts.get(key, _NONE),
            leaving.get(key, _NONE),
        )
        for key in sorted({*updates, *leaving, *inserts})
    )
    vanished = rows.is_delete & ~_mask(rows, matches) & ~_mask(rows, departures)
    return Routed(existing + created, int(vanished.sum()))


def new_rows(rows: KeyedRows, matches: Matches) -> npt.NDArray[np.bool_]:
    """Which rows bring a key that the table does not have; only these need a place."""
    return ~_mask(rows, matches) & ~rows.is_delete


def _mask(rows: KeyedRows, matches: Matches) -> npt.NDArray[np.bool_]:
    """Which rows have a pair."""
    mask = np.zeros(len(rows), np.bool_)
    mask[matches.rows] = True
    return mask


def _by_slice(matches: Matches) -> dict[FileGroupId, Places]:
    """The rows of each slice that has some, ascending."""
    order = np.argsort(matches.at, kind="stable")
    used, firsts = np.unique(matches.at[order], return_index=True)
    parts = np.split(matches.rows[order], firsts[1:]) if len(used) else []
    return {matches.slices[at].key: part for at, part in zip(used.tolist(), parts, strict=True)}


class _NewRows:
    """The rows whose keys are new, by partition."""

    def __init__(
        self, rows: KeyedRows, is_new: npt.NDArray[np.bool_], limits: SizeLimits, ids: Ids
    ) -> None:
        self._rows = rows
        self._limits = limits
        self._ids = ids
        new = {path: part[is_new[part]] for path, part in rows_by_partition(rows).items()}
        self._new = {path: part for path, part in new.items() if len(part)}

    def into_small_files(
        self,
        candidates: Sequence[FileSlice],
        rewritten: frozenset[FileGroupId],
        refused: Refused | None = None,
    ) -> tuple[dict[FileGroupId, Places], dict[str, Places]]:
        """The rows that small file groups take in, and by partition those that are left."""
        by_partition: dict[str, list[FileSlice]] = {}
        for slice_ in candidates:
            by_partition.setdefault(slice_.partition, []).append(slice_)
        taken: dict[FileGroupId, Places] = {}
        left: dict[str, Places] = {}
        for path, places in self._new.items():
            start, homeless = 0, [_NONE]
            for share in shares(by_partition.get(path, ()), len(places), self._limits, rewritten):
                own = places[start : start + share.row_count]
                start += share.row_count
                if refused is not None:
                    is_in = refused(share.slice, self._rows.keys.take(pa.array(own)))
                    homeless.append(own[is_in])
                    own = own[~is_in]
                if len(own):
                    taken[share.slice.key] = own
            left[path] = np.concatenate([*homeless, places[start:]])
        return taken, left

    def in_files_of_their_own(self, left: dict[str, Places]) -> Iterator[GroupWork]:
        """New file groups of equal size, no more than the size of files asks for."""
        for path, places in left.items():
            count = -(-len(places) // self._limits.rows_per_file)
            for part in np.array_split(places, count) if count else ():
                yield new_group(FileGroupId(path, f"{self._ids.fresh()}-0"), part)

    def by_bucket(self, buckets: Buckets) -> Iterator[GroupWork]:
        """A new file group for each bucket that has none yet."""
        for path, places in self._new.items():
            numbers = bucket_numbers(self._rows.keys.take(places), buckets)
            for number in np.unique(numbers).tolist():
                key = FileGroupId(path, bucket_file_id(number, self._ids.fresh()))
                yield new_group(key, places[numbers == number])


def new_group(key: FileGroupId, inserts: Places) -> GroupWork:
    """A file group that begins with some new rows."""
    return GroupWork(key, None, _NONE, inserts, _NONE)
