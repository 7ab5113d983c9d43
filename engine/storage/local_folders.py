"""Scanning local folders, one `scandir` each, with sizes and times but without drafts.

The root of a local storage: its address, its presence, and the folders below it.
"""

import errno
import math
import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress

from lakewarden.engine.kernel.clock import SystemClock
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.storage.drafts import DRAFT_SUFFIX, Drafts
from lakewarden.engine.storage.paths import prefix_of
from lakewarden.engine.storage.port import NO_FILES, Entry, KnownFiles, unavailable

# Refuses a link that leads out.
CheckLink = Callable[[str], None]


def entry_of(path: str, status: os.stat_result) -> Entry | None:
    """The entry of a regular file; None for anything else."""
    if not stat.S_ISREG(status.st_mode):
        return None
    return Entry(path, status.st_size, status.st_mtime_ns // 1_000_000)


def scan_folder(
    place: str, folder: str, check_link: CheckLink, known: KnownFiles = NO_FILES
) -> tuple[list[Entry], list[str]]:
    """The files and folders directly in a place, named as below `folder`.

    A link with a target is checked and not skipped, since its files would be missing silently.
    """
    prefix = prefix_of(folder)
    files: list[Entry] = []
    folders: list[str] = []
    with os.scandir(place) as children:
        for child in children:
            if child.name.endswith(DRAFT_SUFFIX):
                continue
            path = prefix + child.name
            entry = known.get(path)
            if entry is not None and not child.is_symlink():
                files.append(entry)
                continue
            try:
                if child.is_symlink() and os.path.exists(child.path):
                    check_link(child.path)
                if child.is_dir():
                    folders.append(path)
                elif entry := entry_of(path, child.stat()):
                    files.append(entry)
            except FileNotFoundError:
                # It vanished since the listing, or is a link to nowhere.
                continue
    return files, folders


def scan_tree(place: str, folder: str, check_link: CheckLink) -> list[Entry]:
    """All files below a place; a loop of links ends with the system's ELOOP."""
    found, pending = scan_folder(place, folder, check_link)
    skipped = len(prefix_of(folder))
    while pending:
        path = pending.pop()
        with suppress(FileNotFoundError):
            files, folders = scan_folder(f"{place}/{path[skipped:]}", path, check_link)
            found += files
            pending += folders
    return found


def remove_tree(place: str) -> int:
    """Remove a folder and all below it, together with anybody else who does the same.

    Links are removed and not followed. The number of files this call removed, without drafts.
    """
    removed = 0
    with suppress(FileNotFoundError, NotADirectoryError):
        with os.scandir(place) as children:
            inside = [(child.path, child.is_dir(follow_symlinks=False)) for child in children]
        for path, is_folder in inside:
            removed += remove_tree(path) if is_folder else _remove_file(path)
        os.rmdir(place)
    return removed


def _remove_file(place: str) -> int:
    try:
        os.unlink(place)
    except FileNotFoundError:
        return 0
    return 0 if place.endswith(DRAFT_SUFFIX) else 1


# So long a folder counts as none that a link leads to.
LOOK_AGAIN_SECONDS = 1.0
_FOLDERS_KNOWN_MAX = 10_000
_OWN_FOLDER = ".hoodie"
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
        self._clock = SystemClock()
        self._looked_at: dict[str, float] = {}

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
        self.assert_inside(folder)
        if not os.path.isdir(folder):
            self.assert_present(operation, place)
            os.makedirs(folder, exist_ok=True)
            self._was_seen = True

    def assert_inside(self, place: str) -> None:
        """Refuse a place to which a link leads that leaves the root.

        Links within the root are refused, too, where they lead into the table's own folder. A
        folder that was looked at is not looked at again at once.
        """
        folder = os.path.dirname(place)
        now = self._clock.elapsed_seconds()
        if self._looked_at.get(folder, -math.inf) + LOOK_AGAIN_SECONDS < now:
            self.assert_inside_now(folder)
            if len(self._looked_at) >= _FOLDERS_KNOWN_MAX:
                self._looked_at.clear()
            self._looked_at[folder] = now
        if len(place) > len(self._place) and os.path.islink(place):
            self.assert_leads_inside(place)

    def assert_inside_now(self, place: str) -> None:
        """The same, looking at every folder on the way: before anything is removed."""
        at = len(self._place.rstrip("/"))
        while 0 <= at < len(place):
            end = place.find("/", at + 1)
            at = len(place) if end < 0 else end
            if os.path.islink(place[:at]):
                self.assert_leads_inside(place[:at])

    def assert_leads_inside(self, link: str) -> None:
        """Refuse a link that leads out of the root, or into the folder of the table's own files."""
        root = os.path.realpath(self._place)
        target = os.path.realpath(link)
        if os.path.islink(target):
            # It goes round for ever, which the system says itself.
            return
        own = f"{root}/{_OWN_FOLDER}"
        if f"{target}/".startswith(f"{root.rstrip('/')}/") and not f"{target}/".startswith(
            f"{own}/"
        ):
            return
        raise CorruptTable(
            "link_leaves_table",
            what=f"{link} is a link to a place outside the table's data.",
            why="A table reads, writes and deletes only in its own folder.",
            now="Replace the link with the files. Nothing was changed.",
            path=link,
        )

    def look_again(self) -> None:
        """Take the root as it is now, after we may have removed it ourselves."""
        self._was_seen = os.path.isdir(self._place)
