"""The scope of a clean: the partitions that have anything old since the last clean.

What was retained then has become old only in partitions that were written to between the horizon of
the last clean and the new one. Where these are not known, all partitions are looked at.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from lakewarden.engine.conflicts.touched_groups import touched_by
from lakewarden.engine.formats.instant_metadata import clean
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.timeline.active import ActiveTimeline
from lakewarden.engine.timeline.instants.instant import Action

# In the extra metadata of a clean, as Java has it: the savepoints there were, with commas.
SAVEPOINTS_KEY = "savepointed_timestamps"
# In the extra metadata of a clean: its caller named the partitions.
PARTIAL_KEY = "lakewarden.clean.partial"


@dataclass(frozen=True, slots=True, kw_only=True)
class LastClean:
    """What the last completed clean says of itself."""

    instant: str
    # Empty where it counted versions.
    earliest: str = ""
    last_write: str = ""
    savepoints: frozenset[str] = frozenset()
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class CleanScope:
    """The partitions to look at, None for all of them, and why these."""

    partitions: tuple[str, ...] | None
    why: str


def find_last(active: ActiveTimeline) -> LastClean | None:
    """The last completed clean; None without one, or when its content says nothing."""
    completed = active.completed((Action.CLEAN,))
    if not completed:
        return None
    try:
        metadata = clean.decode(active.read(completed[-1]), active.path(completed[-1]))
    except CorruptTable:
        return None
    extra = metadata.extra_metadata or {}
    return LastClean(
        instant=completed[-1].requested,
        earliest=metadata.earliest_commit_to_retain.strip(),
        last_write=metadata.last_completed_commit_timestamp,
        savepoints=frozenset(filter(None, extra.get(SAVEPOINTS_KEY, "").split(","))),
        is_partial=extra.get(PARTIAL_KEY) == "true",
    )


def find_scope(
    active: ActiveTimeline, last: LastClean | None, horizon: str | None, *, is_incremental: bool
) -> CleanScope:
    """Where to look for old files; `horizon` is None for a policy that counts versions."""
    reason = _why_all(active, last, horizon, is_incremental=is_incremental)
    if reason is not None or last is None or horizon is None:
        return CleanScope(None, f"All partitions were checked: {reason}.")
    touched = tuple(sorted(set(_touched(active, last, horizon))))
    since = f"written to since {last.earliest}, where the clean {last.instant} stopped"
    return CleanScope(touched, f"{len(touched)} partitions were checked: those {since}.")


def _why_all(
    active: ActiveTimeline, last: LastClean | None, horizon: str | None, *, is_incremental: bool
) -> str | None:
    """Why all partitions have to be looked at, in words."""
    if horizon is None:
        return "the policy counts versions"
    if not is_incremental:
        return "incremental cleaning is off"
    if last is None:
        return "no earlier clean says where it stopped"
    if not last.earliest:
        return f"the clean {last.instant} does not say where it stopped"
    first = active.first_write()
    if first is None or last.earliest < first.requested:
        return f"{last.earliest}, where the clean {last.instant} stopped, is archived"
    if last.is_partial:
        return f"the clean {last.instant} checked only some of them"
    gone = last.savepoints - {one.requested for one in active.savepoints()}
    if gone:
        return f"the savepoint {min(gone)} was deleted since the clean {last.instant}"
    return None


def _touched(active: ActiveTimeline, last: LastClean, horizon: str) -> Iterator[str]:
    for instant in active.completed():
        # What completed since may have been started long before.
        is_new = instant.requested >= last.earliest or (instant.completed or "") > last.instant
        if is_new and instant.requested < horizon:
            yield from (key.partition for key in touched_by(active, instant).keys)
