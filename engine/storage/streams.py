"""Streams to new files that become visible as a whole when closed, or not at all.

The bytes go to a local file or to memory in C++, without the interpreter's lock; only the end of
the stream is ours. Leaving a `with` block by an exception, or dropping the stream unclosed,
abandons it.

The `.crc` files Hadoop keeps beside local files: `.X.crc` holds the checksum of `X`.

Java refuses a file whose checksum file is out of date, so a process that replaces `X` removes
`.X.crc` first: a missing checksum is accepted. Java creates `X` before `.X.crc`, and if the
checksum file is removed meanwhile, Java's `X` stays empty for ever. So a process may touch `.X.crc`
only if it holds `X` or knows the checksum file to be old.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

import pyarrow as pa

from lakewarden.engine.storage.port import failure

SETTLED_AFTER_SECONDS = 60


def is_checksum(name: str) -> bool:
    """Whether a file of that name holds a checksum, and nothing of the table."""
    return name.startswith(".") and name.endswith(".crc")


def drop_checksum(place: str) -> None:
    """Remove the checksum file of a file that is ours to replace or remove."""
    with suppress(FileNotFoundError):
        os.unlink(_checksum_place(place))


def drop_stale_checksum(place: str, now: float) -> None:
    """Remove an old checksum file that outlived its file; `now` is a time of that file system."""
    with suppress(FileNotFoundError):
        age = now - os.stat(_checksum_place(place)).st_mtime
        if age > SETTLED_AFTER_SECONDS and not os.path.lexists(place):
            drop_checksum(place)


def _checksum_place(place: str) -> str:
    folder, _, name = place.rpartition("/")
    return f"{folder}/.{name}.crc"


class _Pending:
    """How a pending stream ends: exactly once, published or abandoned."""

    uri = ""
    _has_ended = True

    def _try_end(self) -> bool:
        first, self._has_ended = not self._has_ended, True
        return first

    def abandon(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def __exit__(
        self,
        kind: type[BaseException] | None,
        cause: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if cause is None:
            self.close()
            return
        self.abandon()
        # Arrow's own writes raise plain OSErrors, a full disk for instance.
        if isinstance(cause, OSError):
            raise failure("write", self.uri, cause) from None

    def __del__(self) -> None:
        self.abandon()


class PendingFile(_Pending, pa.OSFile):  # type: ignore[misc]
    """A stream to a local draft; `publish` gives the closed draft its place or sends it off."""

    def __init__(
        self, draft: str, *, uri: str, publish: Callable[[], None], discard: Callable[[], None]
    ) -> None:
        self.uri = uri
        self._publish = publish
        self._discard = discard
        self._has_ended = False

    def __new__(cls, draft: str, **ends: object) -> "PendingFile":
        stream: PendingFile = pa.OSFile.__new__(cls, draft, "wb")
        return stream

    def close(self) -> None:
        if self._try_end():
            try:
                pa.OSFile.close(self)
                self._publish()
            except BaseException:
                self._discard()
                raise

    def abandon(self) -> None:
        if self._try_end():
            pa.OSFile.close(self)
            self._discard()


class PendingBuffer(_Pending, pa.BufferOutputStream):  # type: ignore[misc]
    """A stream to memory; `publish` gets all of it."""

    def __init__(self, *, uri: str, publish: Callable[[bytes], None]) -> None:
        self.uri = uri
        self._publish = publish
        self._has_ended = False

    def __new__(cls, **ends: object) -> "PendingBuffer":
        stream: PendingBuffer = pa.BufferOutputStream.__new__(cls)
        return stream

    def close(self) -> None:
        if self._try_end():
            self._publish(self.getvalue().to_pybytes())

    def abandon(self) -> None:
        self._try_end()
