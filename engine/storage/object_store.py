"""Object storage: S3 and whatever else fsspec reaches.

An object appears whole or not at all, by the promise of object stores; a protocol that gives less
gives less here, too. New files are written to a local draft and sent when closed, so that an
abandoned stream leaves no unfinished upload behind.

Conditional requests to object stores: exclusive creation and replacing, in spite of retries.

A client library repeats a request whose answer got lost, and the repeated one is then refused
because of the first. So the file is read back after every answer but a plain success.

Some stores speak S3 and ignore the condition. Therefore the first win of a connection is asked
for a second time, with the same content; a store that grants it again is no judge of races.
"""

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest, LakewardenError
from lakewarden.engine.storage.drafts import DRAFT_SUFFIX, discard, judged
from lakewarden.engine.storage.paths import checked_file, checked_folder, joined
from lakewarden.engine.storage.port import (
    NO_FILES,
    Creation,
    Entry,
    KnownFiles,
    Listing,
    Location,
    Lost,
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
    service_code,
)
from lakewarden.engine.storage.protocols import Connection
from lakewarden.engine.storage.s3 import (
    Details,
    RangeReader,
    Tail,
    relative_files,
    relative_folders,
    s3_below,
    s3_children,
    s3_put_if_match,
    s3_read_versioned,
    s3_remove,
    s3_tail,
)
from lakewarden.engine.storage.side_by_side import AtOnce, Concurrency, together
from lakewarden.engine.storage.streams import PendingFile

CONFLICT_ATTEMPTS_MAX = 4
_PRECONDITION_CODES = ("PreconditionFailed", "412")
# S3 says so when a rival removed the object meanwhile: surely refused, and worth another try.
_CONFLICT_CODE = "ConditionalRequestConflict"

Request = Callable[[], object]
ReadBack = Callable[[], bytes | None]
ReadState = Callable[[], Versioned | None]


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a request was not granted."""

    reason: str
    exists: bool
    is_conflict: bool


class ConditionalRequests:
    """The requests of one kind on one connection, and whether its condition has been proven."""

    def __init__(self) -> None:
        self._is_proven = False

    def create(self, payload: bytes, request: Request, read_back: ReadBack) -> Creation:
        """Ask to create a file, and read back whatever is not granted."""
        return self._asked(request, lambda refusal: _judged(payload, refusal, read_back))

    def replace(
        self, payload: bytes, version: str, request: Request, read_state: ReadState
    ) -> Creation:
        """Ask to replace a file in that state, and look at its state if that is not granted."""
        return self._asked(
            request, lambda refusal: _judged_state(payload, version, refusal, read_state)
        )

    def _asked(self, request: Request, judge: Callable[[_Refusal], Creation]) -> Creation:
        answer: Creation = Unknown("Never asked.")
        for _ in range(CONFLICT_ATTEMPTS_MAX):
            found = _answer(request)
            if not isinstance(found, _Refusal):
                return self._proven(request, found)
            answer = judge(found)
            if not (found.is_conflict and isinstance(answer, Unknown)):
                break
        return answer

    def _proven(self, request: Request, found: object) -> Creation:
        if not self._is_proven:
            again = _answer(request)
            if not isinstance(again, _Refusal):
                return Unknown(
                    "The store ignores the condition of a request: it granted the same one twice. "
                    "Two writers could both believe to have won."
                )
            self._is_proven = again.exists
        return Won(found if isinstance(found, str) else None)


def create_unless_seen(
    payload: bytes, put: Callable[[bytes], None], read_back: ReadBack
) -> Creation:
    """Look first, then write: right for a single writer only."""
    content = read_back()
    if content is not None:
        return judged(payload, content, "", refused=True)
    try:
        put(payload)
    except LakewardenError as error:
        return _judged(payload, _Refusal(error.why, exists=False, is_conflict=False), read_back)
    return Won()


def _answer(request: Request) -> object:
    """What the store answers, or why it does not."""
    try:
        return request()
    except Exception as cause:
        code = service_code(cause)
        exists = isinstance(cause, FileExistsError) or code in _PRECONDITION_CODES
        return _Refusal(reason_of(cause), exists, code == _CONFLICT_CODE)


def _judged(payload: bytes, refusal: _Refusal, read_back: ReadBack) -> Creation:
    try:
        content = read_back()
    except LakewardenError as error:
        return Unknown(f"{refusal.reason} Reading back failed as well: {error.why}")
    return judged(payload, content, refusal.reason, refused=refusal.exists)


def _judged_state(
    payload: bytes, version: str, refusal: _Refusal, read_state: ReadState
) -> Creation:
    """Who replaced the file; while it is in its old state, a broken request may still arrive."""
    try:
        state = read_state()
    except LakewardenError as error:
        return Unknown(f"{refusal.reason} Reading back failed as well: {error.why}")
    if state is None:
        return Unknown(f"{refusal.reason} The file is gone.")
    if state.content == payload:
        return Won(state.version)
    return Unknown(refusal.reason) if state.version == version else Lost(state.content)


_CONCURRENCY = AtOnce(16)
# As many as S3 takes by one request.
DELETES_PER_REQUEST = 1000
# Small files, footers and the index of an HFile are in it; more would take longer than a request.
TAIL_BYTES = 1 << 19
_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)

T = TypeVar("T")


class ObjectStorage:
    """A storage on a file system of fsspec."""

    def __init__(
        self,
        location: Location,
        connection: Connection,
        creates: ConditionalRequests,
        replaces: ConditionalRequests,
    ) -> None:
        self._location = location
        self._connection = connection
        self._creates = creates
        self._replaces = replaces
        self._fs = connection.filesystem
        self._root = connection.root

    def __repr__(self) -> str:
        return f"ObjectStorage({self._location.uri!r})"

    @property
    def location(self) -> Location:
        return self._location

    has_file_times = False

    @property
    def has_exclusive_create(self) -> bool:
        return self._connection.creates_exclusively

    @property
    def has_conditional_replace(self) -> bool:
        return self._connection.replaces_conditionally

    @property
    def concurrency(self) -> Concurrency:
        return _CONCURRENCY

    def below(self, folder: str) -> "ObjectStorage":
        if not checked_folder(folder):
            return self
        inner = self._connection.below(folder)
        return ObjectStorage(self._location.below(folder), inner, self._creates, self._replaces)

    def uri(self, path: str) -> str:
        return joined(self._location.uri.rstrip("/"), path)

    def stat(self, path: str) -> Entry | None:
        key = self._key(path)
        details = self._ask("look at", path, partial(self._fs.info, key))
        return next(iter(relative_files([details], self._root)), None) if details else None

    def list(self, folder: str, known: KnownFiles = NO_FILES) -> Listing:
        key = self._folder_key(folder)
        ls = partial(self._fs.ls, key, detail=True)
        if self._connection.is_s3:
            ls = partial(s3_children, self._fs, key)
        answer = self._ask("list", folder, ls) or []
        # Asked for a file, most protocols answer with that file.
        details = [one for one in answer if str(one["name"]).startswith(f"{key}/")]
        return listing(relative_files(details, self._root), relative_folders(details, self._root))

    def walk(self, folder: str) -> tuple[Entry, ...]:
        return ordered(relative_files(self._find(folder), self._root))

    def read(self, path: str) -> bytes:
        return required(self.read_if_present(path), self.uri(path))

    def read_if_present(self, path: str) -> bytes | None:
        options = self._connection.in_one_piece
        return self._ask("read", path, partial(self._fs.cat_file, self._key(path), **options))

    def open(self, path: str) -> pa.NativeFile:
        tail = self._tail(path)
        fetch = partial(self._fetch, path, self._key(path))
        return pa.PythonFile(RangeReader(tail.size_bytes, fetch, tail.content), mode="r")

    def put(self, path: str, payload: bytes) -> None:
        key = self._key(path)
        self._make_parent("write", path, key)
        self._done("write", path, partial(self._fs.pipe_file, key, payload))

    def touch(self, path: str) -> bool:
        raise InvalidRequest(
            "unsupported_touch",
            what=f"Cannot touch {self.uri(path)}.",
            why="An object store changes the time of an object only with its content.",
            now="Use a lock provider made for object stores: StorageBasedLockProvider.",
            path=self.uri(path),
        )

    def create(self, path: str) -> pa.NativeFile:
        key = self._key(path)
        draft = self._done("create", path, _fresh_draft)
        return PendingFile(
            draft,
            uri=self.uri(path),
            publish=partial(self._send, path, key, draft),
            discard=partial(discard, draft),
        )

    def create_exclusive(self, path: str, payload: bytes) -> Creation:
        read_back = partial(self.read_if_present, path)
        if not self.has_exclusive_create:
            return create_unless_seen(payload, partial(self.put, path), read_back)
        key = self._key(path)
        request = partial(self._fs.pipe_file, key, payload, mode="create")
        return self._creates.create(payload, request, read_back)

    def create_dated(self, path: str, payload: bytes, modified_ms: int) -> Creation:
        raise no_file_times(self.uri(path))

    def read_versioned(self, path: str) -> Versioned | None:
        key = self._replaceable_key(path)
        return self._ask("read", path, partial(s3_read_versioned, self._fs, key))

    def replace_if(self, path: str, payload: bytes, version: str) -> Creation:
        key = self._replaceable_key(path)
        request = partial(s3_put_if_match, self._fs, key, payload, version)
        return self._replaces.replace(payload, version, request, partial(self.read_versioned, path))

    def delete(self, path: str) -> bool:
        key = self._key(path)
        # S3 does not say whether there was anything to delete.
        return self.stat(path) is not None and self._remove(path, key)

    def delete_all(self, paths: Sequence[str]) -> None:
        self._remove_all("", [self._key(path) for path in paths])

    def delete_folder(self, folder: str) -> int:
        details = self._find(folder)
        self._remove_all(folder, [str(one["name"]) for one in details if one["type"] == "file"])
        if not self._connection.is_flat:
            self._remove_empty_folders(folder)
        return len(relative_files(details, self._root))

    def _key(self, path: str) -> str:
        return f"{self._root}/{checked_file(path)}"

    def _replaceable_key(self, path: str) -> str:
        key = self._key(path)
        if not self.has_conditional_replace:
            raise no_conditional_replace(self.uri(path))
        return key

    def _folder_key(self, folder: str) -> str:
        return self._key(folder) if folder else self._root

    def _find(self, folder: str, *, withdirs: bool = False) -> Sequence[Details]:
        key = self._folder_key(folder)
        find = partial(self._fs.find, key, withdirs=withdirs, detail=True)
        if self._connection.is_s3:
            found = self._ask("list", folder, partial(s3_below, self._fs, key)) or []
        else:
            found = list((self._ask("list", folder, find) or {}).values())
        return [one for one in found if str(one["name"]).startswith(f"{key}/")]

    def _tail(self, path: str) -> Tail:
        """The size of a file, with its end where that comes in the same answer."""
        if self._connection.is_s3:
            tail = self._ask("read", path, partial(s3_tail, self._fs, self._key(path), TAIL_BYTES))
            if tail is None:
                raise missing_file(self.uri(path))
            return tail
        entry = self.stat(path)
        if entry is None:
            raise missing_file(self.uri(path))
        return Tail(b"", entry.size_bytes)

    def _fetch(self, path: str, key: str, start: int, end: int) -> bytes:
        fetch = partial(self._fs.cat_file, key, start=start, end=end)
        return required(self._ask("read", path, fetch), self.uri(path))

    def _send(self, path: str, key: str, draft: str) -> None:
        self._make_parent("create", path, key)
        self._done("create", path, partial(self._fs.put_file, draft, key))
        discard(draft)

    def _make_parent(self, operation: str, path: str, key: str) -> None:
        if not self._connection.is_flat:
            parent = key.rpartition("/")[0]
            self._done(operation, path, partial(self._fs.makedirs, parent, exist_ok=True))

    def _remove_all(self, folder: str, keys: Sequence[str]) -> None:
        """Remove objects, those of S3 many at once."""
        if self._connection.is_s3 and keys:
            parts = range(0, len(keys), DELETES_PER_REQUEST)
            removals = [
                partial(s3_remove, self._fs, keys[first : first + DELETES_PER_REQUEST])
                for first in parts
            ]
            together(self, [partial(self._done, "delete", folder, one) for one in removals])
            return
        together(self, [partial(self._remove, folder, key) for key in keys])

    def _remove(self, path: str, key: str) -> bool:
        return self._ask("delete", path, partial(self._removed, key)) or False

    def _remove_empty_folders(self, folder: str) -> None:
        details = self._find(folder, withdirs=True)
        keys = {str(one["name"]).rstrip("/") for one in details if one["type"] == "directory"}
        for key in sorted(keys | {self._folder_key(folder)}, reverse=True):
            if self._ask("delete", folder, partial(self._fs.isdir, key)):
                self._ask("delete", folder, partial(self._fs.rmdir, key))

    def _removed(self, key: str) -> bool:
        self._fs.rm_file(key)
        return True

    def _ask(self, operation: str, path: str, request: Callable[[], T]) -> T | None:
        """The answer, or None when the store says there is no such thing."""
        try:
            return request()
        except Exception as cause:
            absent = isinstance(cause, _ABSENT) and service_code(cause) != "NoSuchBucket"
            refusal = None if absent else failure(operation, self.uri(path), cause)
        # Raised out here so that the cause, which may hold credentials, is not even its context.
        if refusal is not None:
            raise refusal
        return None

    def _done(self, operation: str, path: str, request: Callable[[], T]) -> T:
        """The answer; that there is no such thing is a failure, too."""
        try:
            return request()
        except Exception as cause:
            refusal = failure(operation, self.uri(path), cause)
        raise refusal


def _fresh_draft() -> str:
    descriptor, draft = tempfile.mkstemp(suffix=DRAFT_SUFFIX)
    os.close(descriptor)
    return draft
