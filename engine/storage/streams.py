"""Streams to new files that become visible as a whole when closed, or not at all.

The bytes go to a local file or to memory in C++, without the interpreter's lock; only the end of
the stream is ours. Leaving a `with` block by an exception, or dropping the stream unclosed,
abandons it.
"""

from collections.abc import Callable
from types import TracebackType

import pyarrow as pa

from lakewarden.engine.storage.failures import failure


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
