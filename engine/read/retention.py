"""Retention: how far back a query may look, since cleaning removed older files for good."""

from lakewarden.engine.formats.payloads import clean
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.timeline.instant import Action, Instant
from lakewarden.engine.timeline.timeline import Timeline
from lakewarden.engine.view.file_names import BaseFile, parse_file_name


def check_retained(timeline: Timeline, moment: str | None) -> None:
    """Refuse a look at a past whose files a clean has removed."""
    if moment is None:
        return
    for instant in reversed(timeline.active.completed((Action.CLEAN,))):
        earliest = _earliest_readable(timeline, instant)
        if moment < earliest:
            raise InvalidRequest(
                "history_cleaned",
                what=f"The table as of {moment} can't be read any more.",
                why=f"The clean {instant.requested} removed files live before {earliest}.",
                now=f"Choose {earliest} or later; a savepoint would have kept the older files.",
                as_of=moment,
                earliest=earliest,
            )


def _earliest_readable(timeline: Timeline, instant: Instant) -> str:
    """The first instant as of which no removed file is missed."""
    active = timeline.active
    metadata = clean.decode(active.read(instant), active.path(instant))
    if metadata.earliest_commit_to_retain:
        return metadata.earliest_commit_to_retain
    removed = [
        parse_file_name(name, 0)
        for partition in metadata.partition_metadata.values()
        for name in partition.success_delete_files
    ]
    newest = max((file.instant for file in removed if isinstance(file, BaseFile)), default="")
    # Keeping versions names no commit. A removed file was replaced by a later write, so from the
    # first write after the newest removed one on, nothing is missed in a file group as old.
    later = (i.requested for i in active.completed() if i.requested > newest)
    return next(later, newest) if newest else ""
