"""The plan of an archival: which instants leave the active timeline, and what keeps the next one.

A pure function of instants. Writes leave in the order of their requested times and without a gap,
since readers take whatever is older than the first active write for completed. Cleans and rollbacks
go with the writes around them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lakewarden.engine.timeline.instants.instant import Action, Instant

_FOLLOWERS = frozenset({Action.CLEAN, Action.ROLLBACK})


class ArchiveHold(StrEnum):
    """Why a write stays on the active timeline; the words are shown to users."""

    KEPT = "kept"
    PENDING = "pending"
    SAVEPOINT = "savepoint"
    RETAINED = "retained_by_clean"
    UNCLEANED = "replaced_files_not_cleaned"
    COMPACTION = "next_compaction"
    METADATA = "metadata_table"
    DATA_TABLE = "data_table"
    SWEEP = "sweep"
    OPEN = "attempt_alive"
    ROLLBACK = "pending_rollback"


@dataclass(frozen=True, slots=True, kw_only=True)
class Barrier:
    """Writes requested at this time or later stay; an empty time holds them all."""

    hold: ArchiveHold
    before: str
    # The instant that holds them, if it is one.
    instant: str | None = None
    why: str


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """How many completed writes stay active."""

    keep_min: int = 20
    keep_max: int = 30
    goes_beyond_savepoints: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivePlan:
    """What leaves, oldest first; the oldest write that stays, and what keeps it."""

    instants: tuple[Instant, ...] = ()
    oldest_kept: Instant | None = None
    held: Barrier | None = None


def plan_archive(
    instants: Iterable[Instant], barriers: Iterable[Barrier], limits: ArchiveLimits
) -> ArchivePlan:
    """What is to be archived of an active timeline."""
    known = sorted(instants)
    writes = [one for one in known if one.is_completed and one.action.is_write]
    open_ones = _removable(known, writes, limits)
    if len(writes) <= limits.keep_max:
        return _planned(known, (), open_ones, _enough(writes, limits))
    lowest = min([*_own_barriers(known, limits), *barriers], key=_before, default=None)
    room = len(writes) - limits.keep_min
    passed = [one for one in open_ones if lowest is None or one.requested < lowest.before]
    chosen = passed[:room]
    is_held = len(passed) < min(room, len(open_ones))
    return _planned(known, chosen, open_ones, lowest if is_held else _enough(writes, limits))


def limited(plan: ArchivePlan, count: int | None) -> ArchivePlan:
    """All of a plan, or the first so many instants of a plan; the rest follow in another one."""
    return ArchivePlan(instants=plan.instants[:count], oldest_kept=plan.oldest_kept, held=plan.held)


def behind(instants: Iterable[Instant], time: str) -> str:
    """The last completed write before a time, which has to stay with what is at that time.

    So what was started then does not become older than the whole active timeline.
    """
    before = [one.requested for one in instants if _is_completed_write(one)]
    return max((requested for requested in before if requested < time), default=time)


def compaction_barrier(instants: Sequence[Instant], deltacommits: int) -> Barrier | None:
    """What the trigger of the next compaction counts: as many deltacommits, or all since the last.

    Without them on the timeline a compaction would never be due.
    """
    compacted = max(
        (one.requested for one in instants if one.is_completed and one.action is Action.COMMIT),
        default=None,
    )
    counted = [
        one.requested
        for one in instants
        if one.action is Action.DELTA_COMMIT
        and (compacted is None or one.completed is None or one.completed > compacted)
    ]
    if not counted and compacted is None:
        return None
    if len(counted) >= deltacommits > 0:
        first = sorted(counted)[-deltacommits]
    else:
        first = min([*counted, *filter(None, [compacted])])
    return Barrier(
        hold=ArchiveHold.COMPACTION,
        before=first,
        instant=compacted,
        why="The next compaction's trigger counts deltacommits.",
    )


def _own_barriers(instants: Sequence[Instant], limits: ArchiveLimits) -> list[Barrier]:
    """Those that the active timeline itself tells."""
    found = [_pending(instants, one) for one in instants if not one.is_completed and _holds(one)]
    savepoints = [one for one in instants if one.action is Action.SAVEPOINT]
    if savepoints and not limits.goes_beyond_savepoints:
        first = savepoints[0].requested
        why = f"The savepoint {first} needs the timeline as it was."
        found.append(Barrier(hold=ArchiveHold.SAVEPOINT, before=first, instant=first, why=why))
    return found


def _holds(instant: Instant) -> bool:
    """A pending write, or what needs the timeline behind it to be finished."""
    return instant.action.is_write or instant.action in (Action.RESTORE, Action.INDEXING)


def _pending(instants: Sequence[Instant], instant: Instant) -> Barrier:
    return Barrier(
        hold=ArchiveHold.PENDING,
        before=behind(instants, instant.requested),
        instant=instant.requested,
        why=f"The {instant.action.value} {instant.requested} has not ended.",
    )


def _removable(
    instants: Sequence[Instant], writes: Sequence[Instant], limits: ArchiveLimits
) -> list[Instant]:
    """The writes that may leave at all: beyond savepoints, those without one."""
    if not limits.goes_beyond_savepoints:
        return list(writes)
    kept = {one.requested for one in instants if one.action is Action.SAVEPOINT}
    return [one for one in writes if one.requested not in kept]


def _enough(writes: Sequence[Instant], limits: ArchiveLimits) -> Barrier:
    if len(writes) <= limits.keep_max:
        why = f"{len(writes)} commits are active; archiving starts at {limits.keep_max + 1}."
    else:
        why = f"{limits.keep_min} commits stay active."
    return Barrier(hold=ArchiveHold.KEPT, before="", why=why)


def _planned(
    instants: Sequence[Instant],
    chosen: Sequence[Instant],
    removable: Sequence[Instant],
    held: Barrier | None,
) -> ArchivePlan:
    last = chosen[-1].requested if chosen else ""
    followers = [
        one
        for one in instants
        if one.is_completed and one.action in _FOLLOWERS and one.requested < last
    ]
    left = removable[len(chosen) :]
    return ArchivePlan(
        instants=tuple(sorted([*chosen, *followers])),
        oldest_kept=left[0] if left else None,
        held=held if left else None,
    )


def _is_completed_write(instant: Instant) -> bool:
    return instant.is_completed and instant.action.is_write


def _before(barrier: Barrier) -> str:
    return barrier.before
