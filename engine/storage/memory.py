"""Memory storage: a table inside this process, for tests and simulations.

A store lives as long as any storage object refers to it; by its name the same process opens it
again. Times come from a clock, so that every run shows the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from threading import Lock
from uuid import uuid4
from weakref import WeakValueDictionary

import pyarrow as pa

from lakewarden.engine.kernel.clock import Clock, SystemClock
from lakewarden.engine.storage.drafts import judged
from lakewarden.engine.storage.paths import checked_file, checked_folder, joined, prefix_of
from lakewarden.engine.storage.port import (
    NO_FILES,
    Creation,
    Entry,
    KnownFiles,
    Listing,
    Location,
    Versioned,
    Won,
    listing,
    ordered,
    required,
)
from lakewarden.engine.storage.side_by_side import IN_TURN
from lakewarden.engine.storage.streams import PendingBuffer

SCHEME = "memory://"


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    modified_ms: int
    version: int


class _Store:
    """The files of one name, under one lock."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self._clock = clock
        self._lock = Lock()
        self._files: dict[str, _File] = {}
        # The names in each folder; those of folders end with a slash.
        self._names: dict[str, set[str]] = {}
        # What was listed since the last change of a folder, by the folder and by who asks.
        self._listings: dict[str, dict[str, Listing]] = {}
        self._versions = count(1)
        self.changes = 0

    def file(self, path: str) -> _File | None:
        with self._lock:
            return self._files.get(path)

    def listing(self, root: str, folder: str) -> Listing:
        """The files and folders of a folder, by their paths below a root."""
        prefix = root + folder
        with self._lock:
            known = self._listings.setdefault(prefix, {})
            if root not in known:
                known[root] = self._listed(prefix, folder)
            return known[root]

    def below(self, prefix: str) -> list[tuple[str, _File]]:
        with self._lock:
            return list(self._below(prefix))

    def put(self, path: str, content: bytes) -> None:
        with self._lock:
            self._keep(path, self._fresh(content))

    def put_if_absent(
        self, path: str, content: bytes, modified_ms: int | None = None
    ) -> _File | None:
        """The file that is there already, or None when this call created it."""
        with self._lock:
            present = self._files.get(path)
            if present is None:
                fresh = self._fresh(content)
                dated = fresh if modified_ms is None else replace(fresh, modified_ms=modified_ms)
                self._keep(path, dated)
            return present

    def replace(self, path: str, content: bytes, version: str) -> _File | None:
        """The file that is there after this, ours or another writer's."""
        with self._lock:
            present = self._files.get(path)
            if present is not None and str(present.version) == version:
                present = self._fresh(content)
                self._keep(path, present)
            return present

    def touch(self, path: str) -> bool:
        with self._lock:
            present = self._files.get(path)
            if present is not None:
                self._keep(path, replace(present, modified_ms=self._clock.now_ms()))
            return present is not None

    def remove(self, path: str) -> bool:
        with self._lock:
            is_there = self._files.pop(path, None) is not None
            if is_there:
                self.changes += 1
                self._forget(path)
            return is_there

    def _listed(self, prefix: str, folder: str) -> Listing:
        names = self._names.get(prefix, ())
        files = [name for name in names if not name.endswith("/")]
        folders = [folder + name[:-1] for name in names if name.endswith("/")]
        return listing(
            [_entry(folder + name, self._files[prefix + name]) for name in files], folders
        )

    def _below(self, prefix: str) -> Iterator[tuple[str, _File]]:
        for name in self._names.get(prefix, ()):
            if name.endswith("/"):
                yield from self._below(prefix + name)
            else:
                yield prefix + name, self._files[prefix + name]

    def _keep(self, path: str, file: _File) -> None:
        self.changes += 1
        prefix, name = _parted(path)
        self._listings.pop(prefix, None)
        if path not in self._files:
            while name not in (known := self._names.setdefault(prefix, set())):
                known.add(name)
                self._listings.pop(prefix, None)
                if not prefix:
                    break
                prefix, name = _parted(prefix)
        self._files[path] = file

    def _forget(self, path: str) -> None:
        """Folders go with their last file."""
        while path:
            prefix, name = _parted(path)
            self._names[prefix].remove(name)
            self._listings.pop(prefix, None)
            if self._names[prefix]:
                return
            del self._names[prefix]
            path = prefix

    def _fresh(self, content: bytes) -> _File:
        return _File(bytes(content), self._clock.now_ms(), next(self._versions))


_stores: "WeakValueDictionary[str, _Store]" = WeakValueDictionary()
_stores_lock = Lock()


def fresh_memory_storage(name: str | None = None, clock: Clock | None = None) -> "MemoryStorage":
    """An empty storage; it takes over its name from any earlier one."""
    store = _Store(name or uuid4().hex, clock or SystemClock())
    with _stores_lock:
        _stores[store.name] = store
    return MemoryStorage(store)


def open_memory_storage(location: Location) -> "MemoryStorage":
    """The storage of that name, as long as anybody holds it; else an empty one."""
    name, _, folder = location.uri.removeprefix(SCHEME).strip("/").partition("/")
    with _stores_lock:
        store = _stores.get(name)
        if store is None:
            store = _stores[name] = _Store(name, SystemClock())
    return MemoryStorage(store, checked_folder(folder))


class MemoryStorage:
    """A storage in memory; folders exist by their files."""

    has_exclusive_create = True
    has_file_times = True
    has_conditional_replace = True
    concurrency = IN_TURN

    def __init__(self, store: _Store, folder: str = "") -> None:
        self._store = store
        self._folder = folder

    def __repr__(self) -> str:
        return f"MemoryStorage({self.location.uri!r})"

    @property
    def location(self) -> Location:
        return Location(SCHEME + joined(self._store.name, self._folder))

    @property
    def changes(self) -> int:
        """How often any file of the store was written, touched or removed."""
        return self._store.changes

    def below(self, folder: str) -> "MemoryStorage":
        return MemoryStorage(self._store, joined(self._folder, checked_folder(folder)))

    def uri(self, path: str) -> str:
        return joined(self.location.uri, path)

    def stat(self, path: str) -> Entry | None:
        file = self._store.file(self._key(path))
        return _entry(path, file) if file else None

    def list(self, folder: str, known: KnownFiles = NO_FILES) -> Listing:
        root = prefix_of(self._folder)
        return self._store.listing(root, prefix_of(checked_folder(folder)))

    def walk(self, folder: str) -> tuple[Entry, ...]:
        prefix = prefix_of(checked_folder(folder))
        return ordered(_entry(path, file) for path, file in self._below(prefix))

    def read(self, path: str) -> bytes:
        return required(self.read_if_present(path), self.uri(path))

    def read_if_present(self, path: str) -> bytes | None:
        file = self._store.file(self._key(path))
        return file.content if file else None

    def open(self, path: str) -> pa.NativeFile:
        return pa.BufferReader(self.read(path))

    def put(self, path: str, payload: bytes) -> None:
        self._store.put(self._key(path), payload)

    def touch(self, path: str) -> bool:
        return self._store.touch(self._key(path))

    def create(self, path: str) -> pa.NativeFile:
        publish = partial(self._store.put, self._key(path))
        return PendingBuffer(uri=self.uri(path), publish=publish)

    def create_exclusive(self, path: str, payload: bytes) -> Creation:
        present = self._store.put_if_absent(self._key(path), payload)
        return Won() if present is None else judged(payload, present.content, "", refused=True)

    def create_dated(self, path: str, payload: bytes, modified_ms: int) -> Creation:
        present = self._store.put_if_absent(self._key(path), payload, modified_ms)
        return Won() if present is None else judged(payload, present.content, "", refused=True)

    def read_versioned(self, path: str) -> Versioned | None:
        file = self._store.file(self._key(path))
        return Versioned(file.content, str(file.version)) if file else None

    def replace_if(self, path: str, payload: bytes, version: str) -> Creation:
        there = self._store.replace(self._key(path), payload, version)
        if there is not None and there.content == payload:
            return Won(str(there.version))
        return judged(payload, there.content if there else None, "It is gone.", refused=True)

    def delete(self, path: str) -> bool:
        return self._store.remove(self._key(path))

    def delete_all(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.delete(path)

    def delete_folder(self, folder: str) -> int:
        prefix = prefix_of(checked_folder(folder))
        return sum(self._store.remove(self._key(path)) for path, _ in self._below(prefix))

    def _key(self, path: str) -> str:
        return joined(self._folder, checked_file(path))

    def _below(self, prefix: str) -> Iterator[tuple[str, _File]]:
        root = prefix_of(self._folder)
        for key, file in self._store.below(root + prefix):
            yield key.removeprefix(root), file


def _parted(path: str) -> tuple[str, str]:
    """The folder of a file or folder, with its slash, and the name in it."""
    at = path.rfind("/", 0, len(path) - 1) + 1
    return path[:at], path[at:]


def _entry(path: str, file: _File) -> Entry:
    return Entry(path, len(file.content), file.modified_ms)
