"""Drafts: where local files stand until they are whole, so that no reader ever meets a part.

A draft has to be on the same file system as its target, for a rename and a link to be atomic. It
stands in the private folder of the table when there is one, else beside its target under a hidden
name that ends in `.tmp`, which Hudi readers ignore. Drafts of markers stand beside the folders of
instants instead: with one foreign file in such a folder, Java's rollback deletes nothing. A process
that dies leaves its draft behind; the first writer to come much later removes it.

Creates: one that was not plainly granted is judged by what is there now.
"""

import math
import os
from contextlib import suppress
from uuid import uuid4

from lakewarden.engine.kernel.clock import SystemClock
from lakewarden.engine.storage.port import Creation, Lost, Unknown, Won


def judged(payload: bytes, content: bytes | None, cause: str, *, refused: bool) -> Creation:
    """Who created the file, when this call was refused as existing or ended in an error.

    Our very payload means that this call, or its own retry, won. Nothing there proves nothing:
    a request under way may still arrive. An empty file has no author.
    """
    if content is None:
        return Unknown(cause)
    if content == payload:
        if payload:
            return Won()
        if not refused:
            return Unknown(cause)
    return Lost(content)


DRAFT_SUFFIX = ".lakewarden.tmp"
ABANDONED_AFTER_MS = 24 * 3600 * 1000
# So long links are taken to lead where they led.
LOOK_AGAIN_SECONDS = 1.0
_FOLDERS_KNOWN_MAX = 1_000
_MARK = ".hoodie"
_PRIVATE = f"{_MARK}/.lakewarden/temp"
_MARKERS = f"{_MARK}/.temp"


def discard(draft: str) -> None:
    """Remove a draft, if it is still there and can be removed; no reader uses drafts."""
    with suppress(OSError):
        os.unlink(draft)


class Drafts:
    """Names for the drafts of one storage."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._swept = False
        self._clock = SystemClock()
        # Where the drafts for a folder stand, and when that was looked at.
        self._private: dict[str, tuple[float, str | None]] = {}

    def fresh(self, target: str) -> str:
        """A name no other draft has; its folder exists as soon as that of the target does."""
        folder = os.path.dirname(target)
        private = self._known_private_folder(folder)
        name = f"{uuid4().hex}{DRAFT_SUFFIX}"
        if private is None:
            markers = f"{self._root}/{_MARKERS}"
            return f"{markers if folder.startswith(f'{markers}/') else folder}/.{name}"
        if not self._swept:
            self._swept = True
            _remove_abandoned(private)
        return f"{private}/{name}"

    def _known_private_folder(self, folder: str) -> str | None:
        """The same without a look at each folder on the way, if there was one a moment ago."""
        now = self._clock.elapsed_seconds()
        at, private = self._private.get(folder, (-math.inf, None))
        if at + LOOK_AGAIN_SECONDS < now or (private is not None and not os.path.isdir(private)):
            if len(self._private) >= _FOLDERS_KNOWN_MAX:
                self._private.clear()
            private = self._private_folder(folder)
            self._private[folder] = now, private
        return private

    def _private_folder(self, folder: str) -> str | None:
        try:
            if os.stat(f"{self._root}/{_MARK}").st_dev != os.stat(folder).st_dev:
                return None
            private = f"{self._root}/{_PRIVATE}"
            os.makedirs(private, exist_ok=True)
            if os.path.realpath(private) != f"{os.path.realpath(self._root)}/{_PRIVATE}":
                # Nothing is made where a link leads.
                return None
        except OSError:
            return None
        return private


def _remove_abandoned(folder: str) -> None:
    oldest_ms = SystemClock().now_ms() - ABANDONED_AFTER_MS
    # Another writer may be sweeping as well, and a file of another user stays.
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(DRAFT_SUFFIX) and entry.stat().st_mtime * 1000 < oldest_ms:
                os.unlink(entry.path)
