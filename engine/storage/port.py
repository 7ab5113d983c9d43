"""The storage port: everything the engine may ask of the place where a table lives.

Paths are relative to the storage's root, separated by `/`; "" is the root itself. Answers that
depend on other writers are values, so that the caller has to think about each of them.

Failures of a storage as errors: which operation, on which path, and why, in words of ours.

The words of a cause are never repeated and the cause is never chained to an error about a remote
store, for both may hold credentials. Only its type, its error number and the short code of the
service's answer appear.

Listings in one order: whatever a store's order or repetition, the engine sees sorted entries.

A store may show a file twice when it is replaced while being listed; the later one counts.
"""

import errno
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

import pyarrow as pa

from lakewarden.engine.kernel.errors import (
    CorruptTable,
    InvalidRequest,
    LakewardenError,
    Unavailable,
)
from lakewarden.engine.storage.side_by_side import Concurrency


@dataclass(frozen=True, slots=True)
class Entry:
    """A file as a listing shows it."""

    path: str
    size_bytes: int
    modified_ms: int

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


# By path, what a listing need not look at again.
KnownFiles = Mapping[str, Entry]
NO_FILES: KnownFiles = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Listing:
    """The direct children of a folder, sorted by path; empty when the folder does not exist."""

    files: tuple[Entry, ...]
    folders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Versioned:
    """A file's content, and a mark of this very state of it; only the storage understands it."""

    content: bytes
    version: str


@dataclass(frozen=True, slots=True)
class Won:
    """The file was created, or replaced, by this call."""

    # The state that it is in now, where the store says so at once.
    version: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Lost:
    """Another writer's file is there; this is what it says."""

    content: bytes


@dataclass(frozen=True, slots=True)
class Unknown:
    """The file may or may not be ours: neither retry blindly nor clean up."""

    cause: str


Creation = Won | Lost | Unknown


@dataclass(frozen=True, slots=True)
class Location:
    """Where a storage is and how to reach it; options may hold credentials and are never shown."""

    uri: str
    options: Mapping[str, object] = field(default_factory=dict, repr=False)

    def below(self, folder: str) -> "Location":
        return Location(f"{self.uri.rstrip('/')}/{folder}", self.options)


class Storage(Protocol):
    """One place with a root. Every failure is a `LakewardenError` naming operation and path."""

    @property
    def location(self) -> Location:
        """Enough to open the same storage in another process."""
        ...

    @property
    def has_exclusive_create(self) -> bool:
        """Whether `create_exclusive` has exactly one winner; without it one writer at most."""
        ...

    @property
    def has_file_times(self) -> bool:
        """Whether files can be given a modification time, exact to the millisecond."""
        ...

    @property
    def has_conditional_replace(self) -> bool:
        """Whether `replace_if` has exactly one winner; without it both calls are refused."""
        ...

    @property
    def concurrency(self) -> Concurrency:
        """How calls are made that do not wait for each other."""
        ...

    def below(self, folder: str) -> "Storage":
        """The same storage, seen from a folder."""
        ...

    def uri(self, path: str) -> str:
        """The full address of a path, as other engines understand it."""
        ...

    def stat(self, path: str) -> Entry | None:
        """The file's entry, or None when there is no such file."""
        ...

    def list(self, folder: str, known: KnownFiles = NO_FILES) -> Listing:
        """The direct children of a folder.

        Where each file costs a look, a known one may be shown as it is known, if it is there.
        """
        ...

    def walk(self, folder: str) -> tuple[Entry, ...]:
        """All files below a folder at any depth, sorted by path."""
        ...

    def read(self, path: str) -> bytes:
        """The whole file; `CorruptTable` with code `missing_file` when it is not there."""
        ...

    def read_if_present(self, path: str) -> bytes | None:
        """The whole file, or None when it is not there."""
        ...

    def open(self, path: str) -> pa.NativeFile:
        """The file for random access; `missing_file` as with `read`."""
        ...

    def put(self, path: str, payload: bytes) -> None:
        """Create or replace a file; readers see the old or the new content, never a part."""
        ...

    def touch(self, path: str) -> bool:
        """Give a file the present time without touching its content; False when it is not there.

        An object store cannot do so and refuses with `unsupported_touch`.
        """
        ...

    def create(self, path: str) -> pa.NativeFile:
        """A stream to a new file, visible as a whole once closed without error."""
        ...

    def create_exclusive(self, path: str, payload: bytes) -> Creation:
        """Create a file unless it exists.

        After an error the adapter reads back: the very payload means this call (or its own
        retry) won. So payloads of rivals must differ, by an owner inside; an empty payload
        cannot be recognised and gives `Lost` or `Unknown` then.
        """
        ...

    def create_dated(self, path: str, payload: bytes, modified_ms: int) -> Creation:
        """The same, with that moment as the file's modification time; no reader ever sees a part.

        A storage that gives files its own times refuses with `unsupported_file_times`.
        """
        ...

    def read_versioned(self, path: str) -> Versioned | None:
        """The whole file and its version, or None when it is not there."""
        ...

    def replace_if(self, path: str, payload: bytes, version: str) -> Creation:
        """Replace a file if it is still in the state it was read in.

        `Lost` tells what is there instead, `Unknown` also that it is gone. As with creating,
        payloads of rivals must differ, and a payload must differ from what it replaces.
        """
        ...

    def delete(self, path: str) -> bool:
        """Remove a file; False when it was not there."""
        ...

    def delete_all(self, paths: Sequence[str]) -> None:
        """Remove files, whether they are there or not."""
        ...

    def delete_folder(self, folder: str) -> int:
        """Remove a folder with everything below it; the number of files removed."""
        ...


_SERVICE_CODE = re.compile(r"[A-Za-z0-9]{1,40}")
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def missing_file(uri: str) -> CorruptTable:
    """The error for a missing file that has to be there."""
    return CorruptTable(
        "missing_file",
        what=f"{uri} does not exist.",
        why="Another writer has removed it, or it is lost.",
        now="Read the timeline again; if it still names the file, the table needs repair.",
        path=uri,
        offset=None,
    )


def required(content: bytes | None, uri: str) -> bytes:
    """The content of a file that has to be there."""
    if content is None:
        raise missing_file(uri)
    return content


def unavailable(operation: str, uri: str, reason: str) -> Unavailable:
    """The storage did not do what it was asked for."""
    return _unavailable("storage_unavailable", operation, uri, reason, _RETRY)


def no_conditional_replace(uri: str) -> InvalidRequest:
    """The storage cannot compare and replace in one step."""
    return InvalidRequest(
        "unsupported_conditional_replace",
        what=f"The storage of {uri} has no conditional replace.",
        why="It cannot compare and replace a file in one step.",
        now="Use something that needs no conditional writes, such as another lock provider.",
        path=uri,
    )


def no_file_times(uri: str) -> InvalidRequest:
    """The storage itself decides what the modification time of a file is."""
    return InvalidRequest(
        "unsupported_file_times",
        what=f"The storage of {uri} gives files its own modification times.",
        why="Tables of version 6 record there when an instant completed.",
        now="Write to such tables on a file system only.",
        path=uri,
    )


def failure(operation: str, uri: str, cause: Exception) -> LakewardenError:
    """The error that stands for what a file system or a client library raised."""
    if isinstance(cause, LakewardenError):
        return cause
    number = cause.errno if isinstance(cause, OSError) else None
    reason = reason_of(cause)
    if number == errno.ENAMETOOLONG:
        return InvalidRequest(
            "invalid_path", what=f"Cannot {operation} {uri}.", why=reason, now=_SHORTEN, path=uri
        )
    if isinstance(cause, PermissionError) or number in _DENIED:
        return _unavailable("storage_denied", operation, uri, reason, _GRANT)
    if number in _FULL:
        return _unavailable("storage_full", operation, uri, reason, _FREE)
    return unavailable(operation, uri, reason)


def reason_of(cause: BaseException) -> str:
    """The public part of a cause: its type, the system's words for its number, a service code."""
    words = [type(cause).__name__]
    if isinstance(cause, OSError) and cause.errno:
        words.append(os.strerror(cause.errno))
    code = service_code(cause)
    if code is not None:
        words.append(f"the service answered {code}")
    return ": ".join(words) + "."


def service_code(cause: BaseException | None) -> str | None:
    """The code of a web service's answer, such as NoSuchBucket, behind a translated error."""
    while cause is not None:
        response = getattr(cause, "response", None)
        if isinstance(response, dict):
            code = str(response.get("Error", {}).get("Code", ""))
            return code if _SERVICE_CODE.fullmatch(code) else None
        cause = cause.__cause__
    return None


_RETRY = "Check that the storage can be reached, then try again."
_GRANT = "Grant the right to this path, or open the table with other credentials."
_FREE = "Free some space, then try again."
_SHORTEN = "Shorten the name."


def _unavailable(code: str, operation: str, uri: str, reason: str, now: str) -> Unavailable:
    return Unavailable(
        code,
        what=f"Cannot {operation} {uri}.",
        why=reason,
        now=now,
        operation=operation,
        path=uri,
    )


def ordered(files: Iterable[Entry]) -> tuple[Entry, ...]:
    """Each path once, sorted."""
    found = list(files)
    by_path = {entry.path: entry for entry in found}
    if len(by_path) < len(found):
        by_path = _latest(found)
    return tuple(map(by_path.__getitem__, sorted(by_path)))


def _latest(files: Iterable[Entry]) -> dict[str, Entry]:
    latest: dict[str, Entry] = {}
    for entry in files:
        known = latest.get(entry.path)
        if known is None or _age(known) < _age(entry):
            latest[entry.path] = entry
    return latest


def listing(files: Iterable[Entry], folders: Iterable[str]) -> Listing:
    """The children of one folder, each once, sorted."""
    return Listing(ordered(files), tuple(sorted(set(folders))))


def _age(entry: Entry) -> tuple[int, int]:
    return entry.modified_ms, entry.size_bytes
