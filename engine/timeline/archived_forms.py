"""What the archive keeps of an active instant: its metadata, and for services their plan."""

from lakewarden.engine.timeline.active import ActiveTimeline, StateFile
from lakewarden.engine.timeline.archived.rows import ArchivedInstant
from lakewarden.engine.timeline.instants.instant import Action, Instant

_PLAN_IS_REQUESTED = (Action.CLEAN, Action.COMPACTION, Action.LOG_COMPACTION)
# An insert overwrite asks for nothing; what it does is in its inflight file.
_PLAN_IS_LAST_WRITTEN = (Action.REPLACE_COMMIT, Action.CLUSTERING)


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
    if file is None or file.entry.size_bytes == 0:
        return None
    return active.read(file.instant) or None
