"""The root of a local storage: its address, its presence, and the folders below it."""

import errno
import os
import re

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.storage.drafts import Drafts
from lakewarden.engine.storage.failures import unavailable

_ADDRESS = re.compile(r"(?P<scheme>file:(?://(?:localhost)?)?(?=/(?!/)))?(?P<folder>.+)", re.DOTALL)


def absolute(uri: str) -> tuple[str, str]:
    """A local address as it is known everywhere on this machine, and its folder."""
    match = _ADDRESS.fullmatch(uri)
    if match is None or match["folder"].startswith("file:") or "\0" in uri:
        raise InvalidRequest(
            "invalid_location",
            what=f"{uri!r} is not the address of a local folder.",
            why="A local folder is given by a path, file:/path or file:///path.",
            now="Correct the address.",
            uri=uri,
        )
    place = f"/{os.path.abspath(match['folder']).lstrip('/')}"
    return f"{match['scheme'] or ''}{place}", place


def sync_folder(place: str) -> None:
    """Flush a folder's entries to the disk, where the file system can do so."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as cause:
        if cause.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


class LocalRoot:
    """The folder a storage was opened at; once seen, its absence is a failure, not emptiness.

    Otherwise an unmounted disk would look like an empty table, and would be written to.
    """

    def __init__(self, place: str) -> None:
        self.drafts = Drafts(place)
        self._place = place
        self._was_seen = os.path.isdir(place)

    def assert_present(self, operation: str, uri: str) -> None:
        """Refuse to take a vanished root for an empty one."""
        if not self._was_seen:
            return
        try:
            # Not `isdir`, for which a folder one may not look into does not exist.
            os.stat(self._place)
        except (FileNotFoundError, NotADirectoryError):
            reason = f"The folder {self._place} was there and is gone: unmounted or removed."
            raise unavailable(operation, uri, reason) from None

    def make_parent(self, operation: str, place: str) -> None:
        """Make the folder of a file to be."""
        folder = os.path.dirname(place)
        if not os.path.isdir(folder):
            self.assert_present(operation, place)
            os.makedirs(folder, exist_ok=True)
            self._was_seen = True

    def look_again(self) -> None:
        """Take the root as it is now, after we may have removed it ourselves."""
        self._was_seen = os.path.isdir(self._place)
