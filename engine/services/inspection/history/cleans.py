"""Cleans in history: what each has removed."""

from collections.abc import Iterator

from lakewarden.engine.formats.instant_metadata import clean
from lakewarden.engine.formats.instant_metadata.clean import CleanMetadata
from lakewarden.engine.services.inspection.history.history import EVER, History
from lakewarden.engine.timeline.instants.instant import Action, Instant


def cleans(history: History, *, archived: bool) -> Iterator[tuple[Instant, CleanMetadata]]:
    """The completed cleans with their metadata, newest first."""
    for recorded in history.completed((Action.CLEAN,), EVER, archived=archived):
        yield recorded.instant, clean.decode(recorded.content, recorded.path)
