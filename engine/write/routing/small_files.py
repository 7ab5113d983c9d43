"""Small files: which file groups shall take in new rows, and how many of them."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from lakewarden.engine.conflicts.touched_groups import PLANNED, planned_by
from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.timeline.active import ActiveTimeline
from lakewarden.engine.timeline.instants.instant import Action
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
