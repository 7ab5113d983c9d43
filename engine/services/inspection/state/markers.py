"""Markers as values for tables: the data files that instants have announced."""

from dataclasses import dataclass

from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.loading import load_for_display
from lakewarden.engine.transaction.state.markers import TEMP_FOLDER, read_announcements
from lakewarden.engine.transaction.state.pending_instants import age_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerView:
    """A data file that an instant has announced before it was written."""

    instant: str
    partition: str
    file_name: str
    # What kind of file it was to be; None where the marker does not say.
    kind: str | None
    # Whether the instant is pending still, so that its rollback would go by this marker.
    is_needed: bool
    at_ms: int
    age_seconds: float | None


def markers(context: Context, instant: str | None = None) -> tuple[MarkerView, ...]:
    """The markers of an instant, or of all that have any; by instant, partition and file."""
    pending = {one.requested for one in load_for_display(context).timeline.active.pending()}
    return tuple(
        MarkerView(
            instant=one,
            partition=found.file.partition,
            file_name=found.file.name,
            kind=found.kind,
            is_needed=one in pending,
            at_ms=found.at_ms,
            age_seconds=age_seconds(context, found.at_ms),
        )
        for one in ([instant] if instant is not None else _instants(context))
        for found in read_announcements(context.storage, one)
    )


def _instants(context: Context) -> tuple[str, ...]:
    folders = context.storage.list(TEMP_FOLDER).folders
    return tuple(sorted(folder.rstrip("/").rpartition("/")[2] for folder in folders))
