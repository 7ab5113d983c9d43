"""Random access to a remote file: each read is one range request, but for the end of the file.

The end comes with the size, by one request: a footer, or all of a small file. Nothing else is kept.
Arrow asks for the ranges it needs, and merges neighbours itself with `pre_buffer`; a cache below it
would fetch bytes that Arrow did not ask for, and hide errors.
"""

import os
from collections.abc import Callable

Fetch = Callable[[int, int], bytes]


class RangeReader:
    """What Arrow needs to wrap a Python object as a file."""

    def __init__(self, size_bytes: int, fetch: Fetch, end: bytes = b"") -> None:
        self._size_bytes = size_bytes
        self._end = end
        self._end_starts = size_bytes - len(end)
        self._fetch = fetch
        self._position = 0
        self.closed = False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size_bytes}
        self._position = max(0, start[whence] + offset)
        return self._position

    def read(self, size_bytes: int = -1) -> bytes:
        start = self._position
        end = self._size_bytes if size_bytes < 0 else min(start + size_bytes, self._size_bytes)
        if end <= start:
            return b""
        if start >= self._end_starts:
            content = self._end[start - self._end_starts : end - self._end_starts]
        else:
            content = self._fetch(start, end)
        self._position += len(content)
        return content

    def close(self) -> None:
        self.closed = True
