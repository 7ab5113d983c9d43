"""A folder that is watched: whoever opens, makes or deletes anything in it is noticed by Linux."""

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path

_NONBLOCK = os.O_NONBLOCK
# Access, modify, open, moved, create, delete, of the folder itself and of what is in it.
_EVENTS = 0x1 | 0x2 | 0x20 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400
_EVENT = struct.Struct("iIII")
_LIBRARY = ctypes.CDLL(None, use_errno=True)


class Watched:
    """Notes what happens in a folder."""

    def __init__(self, folder: Path) -> None:
        self._descriptor = _LIBRARY.inotify_init1(_NONBLOCK)
        watch = _LIBRARY.inotify_add_watch(self._descriptor, os.fsencode(folder), _EVENTS)
        assert watch >= 0, os.strerror(ctypes.get_errno())

    def seen(self) -> list[str]:
        """The names of what was touched since the last look."""
        try:
            content = os.read(self._descriptor, 1 << 16)
        except BlockingIOError:
            return []
        return list(_names(content))

    def close(self) -> None:
        os.close(self._descriptor)


def _names(content: bytes) -> Iterator[str]:
    at = 0
    while at < len(content):
        _, mask, _, size = _EVENT.unpack_from(content, at)
        at += _EVENT.size
        name = content[at : at + size].rstrip(b"\0").decode()
        yield f"{name or 'the folder'} ({mask:#x})"
        at += size
