"""Markers of ended instants, deleted on request.

As long as an instant is pending, its rollback goes by its markers: without them, files that no
record names would stay.
"""

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.loading import load_for_writing
from lakewarden.engine.transaction.state.markers import delete_markers, marker_folder


def remove_markers(context: Context, instant: str, *, dry_run: bool = False) -> int:
    """Remove the markers of an instant that is not pending; the number of files removed."""
    # The instant becomes part of a path.
    if not instant.isdecimal():
        raise InvalidRequest(
            "bad_instant",
            what=f"{instant!r} is not an instant.",
            why="Instants are digits, such as 20261118101500123.",
            now="Take one from show_markers.",
            instant=instant,
        )
    files = load_for_writing(context).pending(instant)
    if files is not None:
        raise InvalidRequest(
            "markers_needed",
            what=f"The markers of {instant} were not removed.",
            why=f"The {files.started_as.value} is pending, and its rollback would need them.",
            now="Wait until it ends, cancel it or roll it back: that deletes its markers.",
            instant=instant,
        )
    if dry_run:
        return len(context.storage.walk(marker_folder(instant)))
    return delete_markers(context.storage, instant)
