"""Storages that lie: each takes one guard away from the engine, without touching its code."""

from typing import cast

import pyarrow as pa

from lakewarden.engine.storage.port import (
    NO_FILES,
    Creation,
    Entry,
    KnownFiles,
    Listing,
    Lost,
    Storage,
    Unknown,
    Won,
)
from lakewarden.engine.storage.streams import PendingBuffer
from lakewarden.engine.timeline.heartbeats import BEATS_FOLDER, STANDARD_FOLDER
from lakewarden.engine.timeline.ledger.ledger import LEDGER_FOLDER

TIMELINE_FOLDER = ".hoodie/timeline"


class _Lying:
    """Everything that it does not lie about is as it is."""

    def __init__(self, inner: Storage) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


class _Overwriting(_Lying):
    def create_exclusive(self, path: str, payload: bytes) -> Creation:
        if path.startswith(LEDGER_FOLDER):
            self._inner.put(path, payload)
            return Won()
        return self._inner.create_exclusive(path, payload)


class _AppendingAnywhere(_Lying):
    def create_exclusive(self, path: str, payload: bytes) -> Creation:
        answer = self._inner.create_exclusive(path, payload)
        while path.startswith(LEDGER_FOLDER) and isinstance(answer, Lost):
            folder, _, name = path.rpartition("/")
            path = f"{folder}/{int(name.removesuffix('.json')) + 1:06d}.json"
            answer = self._inner.create_exclusive(path, payload)
        return answer


class _KeepingOutputs(_Lying):
    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self._sizes: dict[str, int] = {}

    def create(self, path: str) -> pa.NativeFile:
        def publish(content: bytes) -> None:
            self._sizes[path] = len(content)
            with self._inner.create(path) as stream:
                stream.write(content)

        return PendingBuffer(uri=self._inner.uri(path), publish=publish)

    def stat(self, path: str) -> Entry | None:
        found = self._inner.stat(path)
        if found is None and path in self._sizes:
            return Entry(path, self._sizes[path], 0)
        return found


class _NeverReloading(_Lying):
    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self._first: Listing | None = None
        self._own: set[str] = set()

    def create_exclusive(self, path: str, payload: bytes) -> Creation:
        answer = self._inner.create_exclusive(path, payload)
        if not isinstance(answer, Unknown):
            self._own.add(path)
        return answer

    def list(self, folder: str, known: KnownFiles = NO_FILES) -> Listing:
        now = self._inner.list(folder, known)
        if folder != TIMELINE_FOLDER:
            return now
        self._first = self._first or now
        known = {entry.path for entry in self._first.files} | self._own
        return Listing(tuple(entry for entry in now.files if entry.path in known), now.folders)


class _Forgetting(_Lying):
    def list(self, folder: str, known: KnownFiles = NO_FILES) -> Listing:
        return Listing((), ()) if folder == LEDGER_FOLDER else self._inner.list(folder, known)


class _HidingHeartbeats(_Lying):
    def stat(self, path: str) -> Entry | None:
        return None if path.startswith(STANDARD_FOLDER) else self._inner.stat(path)

    def read_if_present(self, path: str) -> bytes | None:
        return None if path.startswith(BEATS_FOLDER) else self._inner.read_if_present(path)


def overwrites_ledger(inner: Storage) -> Storage:
    """An entry of the ledger may be created though it is there: numbers are nobody's."""
    return cast(Storage, _Overwriting(inner))


def appends_anywhere(inner: Storage) -> Storage:
    """An entry goes behind whatever is there, and not only behind what its writer has read."""
    return cast(Storage, _AppendingAnywhere(inner))


def keeps_outputs(inner: Storage) -> Storage:
    """Every file that an actor has written seems to be there for ever."""
    return cast(Storage, _KeepingOutputs(inner))


def never_reloads(inner: Storage) -> Storage:
    """The timeline stays as an actor saw it first, besides what the actor adds."""
    return cast(Storage, _NeverReloading(inner))


def forgets_cancels(inner: Storage) -> Storage:
    """Nobody finds the ledgers of the instants that have left the timeline."""
    return cast(Storage, _Forgetting(inner))


def hides_heartbeats(inner: Storage) -> Storage:
    """Everybody seems to be dead."""
    return cast(Storage, _HidingHeartbeats(inner))
