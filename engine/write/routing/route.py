"""Routing: which file group takes which rows of a write.

Rows follow their keys; new ones fill small file groups, and the rest begins groups of its own. The
outcome depends on nothing but its inputs: the same rows and ids give the same groups.

Small files: which file groups shall take in new rows, and how many of them.

Dividing a bulk insert: balanced new file groups, without a look at what the table has.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.conflicts.touched_groups import PLANNED, planned_by
from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.index.buckets import bucket_file_id, bucket_numbers
from lakewarden.engine.index.incoming import Matches, no_matches, rows_by_partition
from lakewarden.engine.index.kinds import Buckets
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.ids import Ids
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.table.schema import RECORD_KEY
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.timeline import ActiveTimeline
from lakewarden.engine.write.files.spec import GroupWork
from lakewarden.engine.write.routing.sizes import SizeLimits

_FOLDED = frozenset((Action.COMPACTION, Action.LOG_COMPACTION))


@dataclass(frozen=True, slots=True)
class Share:
    """So many new rows for a file group."""

    slice: FileSlice
    row_count: int


def shares(
    candidates: Iterable[FileSlice],
    row_count: int,
    limits: SizeLimits,
    rewritten: Collection[FileGroupId] = (),
) -> tuple[Share, ...]:
    """How the small ones among some slices share new rows of their partition.

    Those that updates rewrite anyway come first on copy-on-write tables, then the smallest, which
    cost least and have most room. On merge-on-read tables nothing but new rows rewrites a base
    file, so a slice takes part only where this pays, and never while it has logs. Where logs take
    in new rows, those come first that get a log anyway.
    """
    taken = []
    for slice_ in sorted(candidates, key=lambda one: _order(one, limits, rewritten)):
        share = min(_room(slice_, limits), row_count)
        if share > 0 and _pays(slice_, share, limits):
            taken.append(Share(slice_, share))
            row_count -= share
    return tuple(taken)


def _order(
    slice_: FileSlice, limits: SizeLimits, rewritten: Collection[FileGroupId]
) -> tuple[bool, int, FileGroupId]:
    is_free = limits.rewrite_ratio is None or limits.logs_take_rows
    is_extra = is_free and slice_.key not in rewritten
    return is_extra, slice_.size_bytes, slice_.key


def _room(slice_: FileSlice, limits: SizeLimits) -> int:
    """Rows that the slice's base file, or a log above it, can take in."""
    if limits.logs_take_rows:
        is_small = slice_.size_bytes < limits.small_file_bytes
        room_bytes = max(limits.max_file_bytes - slice_.size_bytes, 0) if is_small else 0
        return room_bytes // limits.record_bytes
    base = slice_.base_file
    if base is None or slice_.log_files or base.size_bytes >= limits.small_file_bytes:
        return 0
    return max(limits.max_file_bytes - base.size_bytes, 0) // limits.record_bytes


def _pays(slice_: FileSlice, row_count: int, limits: SizeLimits) -> bool:
    if limits.rewrite_ratio is None or limits.logs_take_rows:
        return True
    return slice_.size_bytes <= limits.rewrite_ratio * limits.bytes_of(row_count)


def without_planned(
    slices: Sequence[FileSlice], active: ActiveTimeline, *, logs_take_rows: bool = False
) -> tuple[FileSlice, ...]:
    """The slices that no pending compaction or clustering is going to rewrite.

    A log is above what a compaction folds, so that it may take in new rows.
    """
    planned = planned_groups(active, PLANNED - _FOLDED if logs_take_rows else PLANNED)
    return tuple(slice_ for slice_ in slices if slice_.key not in planned)


def planned_groups(
    active: ActiveTimeline, actions: Collection[Action] = PLANNED
) -> frozenset[FileGroupId]:
    """The file groups in pending plans of compaction, log compaction and clustering."""
    pending = active.pending(actions)
    return frozenset(key for instant in pending for key in planned_by(active, instant).keys)


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


# Below this, what a second worker saves is less than what one more file costs later.
PARALLEL_FILE_BYTES_MIN = 16 << 20


def divide(
    rows: KeyedRows,
    limits: SizeLimits,
    ids: Ids,
    *,
    workers: int = 1,
    sort: Sequence[str] = (),
) -> tuple[GroupWork, ...]:
    """New file groups for all rows, each of one partition and of about the same size.

    `sort` names columns by which the rows of a partition are ordered over its files, the record key
    among them as `_hoodie_record_key`; without it rows stay in the order given.
    """
    _check_columns(rows, sort)
    groups = []
    for path, places in rows_by_partition(rows).items():
        kept = places[~rows.is_delete[places]]
        ordered = _sorted(rows, kept, sort) if sort else kept
        share = workers * len(kept) / max(len(rows), 1)
        for part in _parts(ordered, limits, share):
            groups.append(new_group(FileGroupId(path, f"{ids.fresh()}-0"), part))
    return tuple(groups)


def _parts(places: Places, limits: SizeLimits, workers: float) -> Iterator[Places]:
    """Rows in as many parts as file size asks for, or workers can use without tiny files."""
    if not len(places):
        return
    by_size = -(-len(places) // limits.rows_per_file)
    useful = min(round(workers), limits.bytes_of(len(places)) // PARALLEL_FILE_BYTES_MIN)
    yield from np.array_split(places, max(by_size, useful, 1))


def _sorted(rows: KeyedRows, places: Places, columns: Sequence[str]) -> Places:
    indices = pa.array(places)
    table = pa.table(
        {
            name: (rows.keys if name == RECORD_KEY else rows.rows.column(name)).take(indices)
            for name in columns
        }
    )
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in columns])
    return np.asarray(places[order.to_numpy()])


def _check_columns(rows: KeyedRows, columns: Sequence[str]) -> None:
    for name in columns:
        if name != RECORD_KEY and name not in rows.rows.column_names:
            raise InvalidRequest(
                "unknown_column",
                what=f"The rows have no column {name!r} to sort by.",
                why=f"They have {', '.join(rows.rows.column_names)}.",
                now="Name one of them, or _hoodie_record_key.",
                column=name,
            )
