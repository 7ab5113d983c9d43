"""Removals: whether files that one look at the timeline speaks of may be gone by the next look.

Cleans, rollbacks and restores are the only actions that delete files of completed writes, and each
is on the timeline before it deletes the first one. A clean that was planned before the first look
keeps all that the newest slices of that look need.

What the archive keeps of an active instant: its metadata, and for services their plan.
"""

from lakewarden.engine.formats.avro.container import plain_container
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.timeline.archived.rows import ArchivedInstant
from lakewarden.engine.timeline.instants.instant import Action, Instant, StateFile
from lakewarden.engine.timeline.timeline import ActiveTimeline

_PLAN_IS_REQUESTED = (Action.CLEAN, Action.COMPACTION, Action.LOG_COMPACTION)
# An insert overwrite asks for nothing; what it does is in its inflight file.
_PLAN_IS_LAST_WRITTEN = (Action.REPLACE_COMMIT, Action.CLUSTERING)
# What is farther apart than this, the archive's compression takes for new.
_PLAIN_BYTES_MAX = 16 << 10


def archived_form(active: ActiveTimeline, instant: Instant) -> ArchivedInstant:
    """A completed instant with the contents that its files have, as Java archives it."""
    assert instant.is_completed
    files = active.files_of(instant)
    assert files is not None
    plan = None
    if files.started_as in _PLAN_IS_REQUESTED:
        plan = _content(active, files.requested)
    elif files.started_as in _PLAN_IS_LAST_WRITTEN:
        plan = _content(active, files.inflight) or _content(active, files.requested)
    return ArchivedInstant(instant, _content(active, files.completed), plan)


def _content(active: ActiveTimeline, file: StateFile | None) -> bytes | None:
    """The content of a file; None for an empty one, as the archive has no empty contents."""
    if file is None:
        return None
    if not file.instant.is_completed and file.entry.size_bytes == 0:
        return None
    content = active.read(file.instant)
    # A row is compressed with its neighbours, which say nearly the same.
    plain = plain_container(content, active.path(file.instant), bytes_max=_PLAIN_BYTES_MAX)
    return plain or None


REMOVING = frozenset({Action.CLEAN, Action.ROLLBACK, Action.RESTORE})


def may_have_removed(before: ActiveTimeline, after: ActiveTimeline) -> bool:
    """Whether something that removes files has started, or has come and gone, between two looks."""
    return bool(removals_between(before, after))


def removals_between(before: ActiveTimeline, after: ActiveTimeline) -> tuple[Instant, ...]:
    """What may have removed files between two looks, oldest first.

    Where that is not known any more, it is what was there at the first look and is not now.
    """
    known = {instant.key for instant in before.instants}
    started = [one for one in after.instants if one.action in REMOVING and one.key not in known]
    if started:
        return tuple(started)
    newest = max((instant.requested for instant in before.instants), default="")
    oldest = _oldest_completed(after)
    if oldest is not None and oldest.requested > newest:
        # All that was known is archived, and with it perhaps a clean that came later.
        return before.completed()
    start = after.first_write()
    left = {instant.key: instant for instant in after.instants if instant.is_completed}
    archived_until = "" if start is None else start.requested
    gone = [
        one for one in before.completed() if one.requested >= archived_until and one.key not in left
    ]
    return tuple(gone) or _taken_back(before, after)


def _taken_back(before: ActiveTimeline, after: ActiveTimeline) -> tuple[Instant, ...]:
    """What was pending and is gone with its plan: its rollback was there at the first look."""
    left = {instant.requested for instant in after.instants}
    return tuple(one for one in before.pending() if one.requested not in left)


def _oldest_completed(active: ActiveTimeline) -> Instant | None:
    """The oldest completed write that no savepoint keeps from being archived.

    A pending one says nothing: the archive leaves completed ones behind, and the next write after a
    savepoint of all that there is finds none.
    """
    kept = {one.requested for one in active.instants if one.action is Action.SAVEPOINT}
    return next((one for one in active.completed() if one.requested not in kept), None)


def outdated(why: str) -> Conflict:
    """The error of a snapshot that cannot be taken whole any more."""
    return Conflict(
        "snapshot_outdated",
        what="The table changed while Lakewarden took a snapshot of it.",
        why=why,
        now="Nothing was read or written. Try again.",
    )
