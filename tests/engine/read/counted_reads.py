"""A storage that counts the bytes of files that are opened and read in parts."""

import io

import pyarrow as pa

from lakewarden.engine.storage.port import Storage


class CountedReads:
    """Any storage, and how many bytes of opened files each read fetches."""

    def __init__(self, inner: Storage, fetched: list[int] | None = None) -> None:
        self._inner = inner
        self.fetched: list[int] = [] if fetched is None else fetched

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def below(self, folder: str) -> "CountedReads":
        return CountedReads(self._inner.below(folder), self.fetched)

    def open(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(_CountedFile(self._inner.read(path), self.fetched), "r")


class _CountedFile(io.BytesIO):
    def __init__(self, content: bytes, fetched: list[int]) -> None:
        super().__init__(content)
        self._fetched = fetched

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        self._fetched.append(len(found))
        return found
