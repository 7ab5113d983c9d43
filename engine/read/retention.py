"""Retention: how far back a query may look, since cleaning removed older files for good."""

from collections.abc import Iterator

from lakewarden.engine.formats.payloads import clean
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.timeline.instant import COMPLETED_WRITES, Action, Instant
from lakewarden.engine.timeline.timeline import Timeline
from lakewarden.engine.view.file_names import BaseFile, parse_file_name


def check_retained(timeline: Timeline, moment: str | None) -> None:
    """Refuse a look at a past whose files a clean has removed, unless a savepoint kept them."""
    if moment is None or any(one.requested == moment for one in timeline.active.savepoints()):
        return
    for instant, metadata in _cleans_after(timeline, moment):
        earliest = _earliest_readable(timeline, metadata)
        if moment < earliest:
            raise InvalidRequest(
                "history_cleaned",
                what=f"The table as of {moment} can't be read any more.",
                why=f"The clean {instant.requested} removed files live before {earliest}.",
                now=f"Choose {earliest} or later; a savepoint would have kept the older files.",
                as_of=moment,
                earliest=earliest,
            )


def _cleans_after(timeline: Timeline, moment: str) -> Iterator[tuple[Instant, clean.CleanMetadata]]:
    """The cleans that began after a moment, newest first; what older ones removed was older still.

    Archived ones matter only to a moment that is older than the active timeline.
    """
    active, cleans = timeline.active, (Action.CLEAN,)
    known = active.completed(cleans)
    for instant in reversed(known):
        if instant.requested > moment:
            yield instant, clean.decode(active.read(instant), active.path(instant))
    is_active = timeline.first_active is None or moment >= timeline.first_active
    if is_active or active.layout.version == 1:
        return
    for row in timeline.archive.rows(cleans, since=moment):
        if row.instant not in known and row.metadata is not None:
            yield row.instant, clean.decode(row.metadata, str(row.instant))


def _earliest_readable(timeline: Timeline, metadata: clean.CleanMetadata) -> str:
    """The first instant as of which no removed file is missed."""
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
    first = timeline.first_active
    is_active = first is not None and newest >= first
    known = timeline.active.instants if is_active or not newest else timeline.instants()
    later = (i.requested for i in known if _is_completed_write(i) and i.requested > newest)
    return next(later, newest) if newest else ""


def _is_completed_write(instant: Instant) -> bool:
    return instant.is_completed and instant.action in COMPLETED_WRITES
