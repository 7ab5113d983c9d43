"""Sources of bytes by range: what formats with an index read from, without caring where it lies."""

from typing import Protocol

import pyarrow as pa


class RangeSource(Protocol):
    """Bytes of known length that can be read in pieces."""

    @property
    def size(self) -> int:
        """How many bytes there are."""
        ...

    def read(self, offset: int, length: int) -> bytes | memoryview:
        """The bytes of a range; fewer only where the source ends before it."""
        ...


class BufferSource:
    """A source in memory, for instance the content of a log block; nothing is copied."""

    def __init__(self, content: bytes | memoryview | pa.Buffer) -> None:
        self._content = memoryview(content).cast("B")

    @property
    def size(self) -> int:
        return len(self._content)

    def read(self, offset: int, length: int) -> memoryview:
        return self._content[offset : offset + length]


class FileRanges:
    """An open file of which only the wanted ranges are read."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        self._size = int(file.size())

    @property
    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int) -> bytes:
        content: bytes = self._file.read_at(length, offset)
        return content
