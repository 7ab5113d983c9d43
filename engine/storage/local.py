"""Local storage: a folder of this machine, or one mounted on it.

Every file becomes visible as a whole: it is written as a draft, flushed to the disk, renamed or
linked to its name, and then the folder is flushed as well. So after a power cut an entry in a
ledger never names files whose bytes are gone. The location option `durable: False` leaves the
flushing to the system, for scratch tables. Removals are never flushed, nor the names of locks and
heartbeats: whatever they say of a process is not true any more after a power cut. An empty file has
no bytes that could be lost; its name is flushed.

Files are opened as plain files and not mapped into memory: mapping is not measurably faster for
parquet, and a mapped file that another process cuts short kills this one.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.storage.drafts import discard, judged
from lakewarden.engine.storage.local_folders import (
    LocalRoot,
    absolute,
    entry_of,
    remove_tree,
    scan_folder,
    scan_tree,
    sync_folder,
)
from lakewarden.engine.storage.paths import checked_file, checked_folder
from lakewarden.engine.storage.port import (
    NO_FILES,
    Creation,
    Entry,
    KnownFiles,
    Listing,
    Location,
    Unknown,
    Versioned,
    Won,
    failure,
    listing,
    missing_file,
    no_conditional_replace,
    no_file_times,
    ordered,
    reason_of,
    required,
)
from lakewarden.engine.storage.side_by_side import IN_TURN
from lakewarden.engine.storage.streams import PendingFile, drop_checksum, drop_stale_checksum

LINK_ATTEMPTS_MAX = 3
_OWN_FOLDER = "/.hoodie/"
_SIGNS_OF_LIFE = (".heartbeat/", ".lakewarden/beats/")
_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
# A network file system answers so when it does not know whether the link was made.
_IN_DOUBT = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT)


class LocalStorage:
    """A storage on the local file system, given by a plain path or a `file:` address."""

    has_exclusive_create = True
    has_file_times = True
    has_conditional_replace = False
    concurrency = IN_TURN

    def __init__(self, location: Location, *, root: LocalRoot | None = None) -> None:
        uri, self._place = absolute(location.uri)
        self._location = Location(uri, location.options)
        self._is_durable = location.options.get("durable") not in (False, "false")
        self._root = root or LocalRoot(self._place)

    def __repr__(self) -> str:
        return f"LocalStorage({self._location.uri!r})"

    @property
    def location(self) -> Location:
        return self._location

    def below(self, folder: str) -> "LocalStorage":
        if not checked_folder(folder):
            return self
        return LocalStorage(self._location.below(folder), root=self._root)

    def uri(self, path: str) -> str:
        return f"{self._location.uri.rstrip('/')}/{path}".rstrip("/")

    def stat(self, path: str) -> Entry | None:
        place = self._place_of(path)
        with self._failures_of("look at", path):
            self._root.assert_inside(place)
            try:
                return entry_of(path, os.stat(place))
            except _ABSENT:
                self._root.assert_present("look at", self.uri(path))
                return None

    def list(self, folder: str, known: KnownFiles = NO_FILES) -> Listing:
        place = self._folder_place(folder)
        with self._failures_of("list", folder):
            self._root.assert_inside(place)
            try:
                files, folders = scan_folder(place, folder, self._root.assert_leads_inside, known)
            except _ABSENT:
                self._root.assert_present("list", self.uri(folder))
                return Listing((), ())
        return listing(files, folders)

    def walk(self, folder: str) -> tuple[Entry, ...]:
        place = self._folder_place(folder)
        with self._failures_of("list", folder):
            self._root.assert_inside(place)
            try:
                files = scan_tree(place, folder, self._root.assert_leads_inside)
            except _ABSENT:
                self._root.assert_present("list", self.uri(folder))
                return ()
        return ordered(files)

    def read(self, path: str) -> bytes:
        return required(self.read_if_present(path), self.uri(path))

    def read_if_present(self, path: str) -> bytes | None:
        place = self._place_of(path)
        with self._failures_of("read", path):
            self._root.assert_inside(place)
            content = _content(place)
            if content is None:
                self._root.assert_present("read", self.uri(path))
            return content

    def open(self, path: str) -> pa.NativeFile:
        place = self._place_of(path)
        with self._failures_of("open", path):
            self._root.assert_inside(place)
            try:
                return pa.OSFile(place)
            except OSError as cause:
                # Arrow has no error type of its own for a folder.
                if not isinstance(cause, _ABSENT) and not os.path.isdir(place):
                    raise
            self._root.assert_present("open", self.uri(path))
        raise missing_file(self.uri(path))

    def put(self, path: str, payload: bytes) -> None:
        place = self._place_of(path)
        with self._failures_of("write", path):
            self._root.make_parent("write", place)
            self._rename(self._written_draft(place, payload), place)

    def touch(self, path: str) -> bool:
        place = self._place_of(path)
        with self._failures_of("touch", path):
            self._root.assert_inside(place)
            try:
                os.utime(place)
            except _ABSENT:
                self._root.assert_present("touch", self.uri(path))
                return False
        return True

    def create(self, path: str) -> pa.NativeFile:
        place = self._place_of(path)
        with self._failures_of("create", path):
            self._root.make_parent("create", place)
            draft = self._root.drafts.fresh(place)
            return PendingFile(
                draft,
                uri=self.uri(path),
                publish=partial(self._publish, path, draft, place),
                discard=partial(discard, draft),
            )

    def create_exclusive(self, path: str, payload: bytes) -> Creation:
        place = self._place_of(path)
        with self._failures_of("create", path):
            self._root.make_parent("create", place)
            draft = self._written_draft(place, payload)
            try:
                return self._link(draft, place, payload)
            finally:
                discard(draft)

    def create_dated(self, path: str, payload: bytes, modified_ms: int) -> Creation:
        place = self._place_of(path)
        with self._failures_of("create", path):
            self._root.make_parent("create", place)
            draft = self._written_draft(place, payload, modified_ms)
            try:
                return self._link(draft, place, payload)
            finally:
                discard(draft)

    def read_versioned(self, path: str) -> Versioned | None:
        raise no_conditional_replace(self.uri(checked_file(path)))

    def replace_if(self, path: str, payload: bytes, version: str) -> Creation:
        raise no_conditional_replace(self.uri(checked_file(path)))

    def delete(self, path: str) -> bool:
        place = self._place_of(path)
        with self._failures_of("delete", path):
            # A link is removed itself, and not what it leads to.
            self._root.assert_inside_now(os.path.dirname(place))
            if os.path.isdir(place) and not os.path.islink(place):
                return False
            if os.path.lexists(place):
                drop_checksum(place)
            try:
                os.unlink(place)
            except _ABSENT:
                self._root.assert_present("delete", self.uri(path))
                return False
        return True

    def delete_all(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.delete(path)

    def delete_folder(self, folder: str) -> int:
        place = self._folder_place(folder)
        with self._failures_of("delete", folder):
            self._root.assert_inside_now(place)
            removed = remove_tree(place)
        self._root.look_again()
        return removed

    def _place_of(self, path: str) -> str:
        return f"{self._place.rstrip('/')}/{checked_file(path)}"

    def _folder_place(self, folder: str) -> str:
        return self._place_of(folder) if folder else self._place

    @contextmanager
    def _failures_of(self, operation: str, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as cause:
            raise failure(operation, self.uri(path), cause) from cause

    def _written_draft(self, place: str, payload: bytes, modified_ms: int | None = None) -> str:
        draft = self._root.drafts.fresh(place)
        try:
            with open(draft, "xb") as file:
                if payload:
                    file.write(payload)
                    file.flush()
                if modified_ms is not None:
                    self._date(file.fileno(), modified_ms)
                if payload:
                    self._sync(file.fileno())
        except BaseException:
            discard(draft)
            raise
        return draft

    def _date(self, descriptor: int, modified_ms: int) -> None:
        """Some file systems, and stores that look like one, keep whole seconds."""
        os.utime(descriptor, ns=(modified_ms * 1_000_000,) * 2)
        if os.fstat(descriptor).st_mtime_ns // 1_000_000 != modified_ms:
            raise no_file_times(self._location.uri)

    def _publish(self, path: str, draft: str, place: str) -> None:
        with self._failures_of("create", path):
            with open(draft, "rb") as file:
                self._sync(file.fileno())
            # Minutes may have passed, and another process may have removed the empty folder.
            self._root.make_parent("create", place)
            self._rename(draft, place)

    def _rename(self, draft: str, place: str) -> None:
        try:
            drop_checksum(place)
            os.replace(draft, place)
        except BaseException:
            discard(draft)
            raise
        self._sync_parent(place)

    def _link(self, draft: str, place: str, payload: bytes) -> Creation:
        drop_stale_checksum(place, now=os.stat(draft).st_mtime)
        for _ in range(LINK_ATTEMPTS_MAX):
            try:
                os.link(draft, place)
            except FileExistsError:
                content = _content(place)
                if content is not None:
                    return judged(payload, content, "", refused=True)
            except OSError as cause:
                return self._judged_failure(cause, place, payload)
            else:
                return self._won(place)
        return Unknown("The file system says that it exists, but no read finds it.")

    def _judged_failure(self, cause: OSError, place: str, payload: bytes) -> Creation:
        if cause.errno in _NO_LINKS:
            raise _no_links(self._location.uri) from cause
        if cause.errno not in _IN_DOUBT:
            raise cause
        return judged(payload, _content(place), reason_of(cause), refused=False)

    def _won(self, place: str) -> Creation:
        try:
            drop_checksum(place)
            self._sync_parent(place)
        except OSError as cause:
            return Unknown(f"It was created, but may not be durable. {reason_of(cause)}")
        return Won()

    def _sync(self, descriptor: int) -> None:
        if self._is_durable:
            os.fsync(descriptor)

    def _sync_parent(self, place: str) -> None:
        if self._is_durable and not _is_of_process(place):
            sync_folder(os.path.dirname(place))


def _is_of_process(place: str) -> bool:
    """Whether a file only says what a process is doing; its bytes are flushed all the same.

    A lock that lost its bytes would count as one of another engine, and be waited for.
    """
    path = place.rpartition(_OWN_FOLDER)[2]
    return path == "lock" or path.startswith(_SIGNS_OF_LIFE)


def _content(place: str) -> bytes | None:
    try:
        with open(place, "rb", buffering=0) as file:
            return file.readall()
    except _ABSENT:
        return None


def _no_links(uri: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_file_system",
        what=f"The file system of {uri} has no hard links.",
        why="Without them two writers could both believe they created the same file.",
        now="Keep the table on another file system.",
        path=uri,
    )
