"""Options of S3: credentials and addresses by the names that users know, as s3fs takes them.

Hadoop's `fs.s3a.*` describe the same for Spark, and AWS's own names are those of other readers.
Where several say the same, s3fs's own name wins, then AWS's, then Hadoop's.

Entries of an object store: what the many dialects of fsspec's file details say alike.

Random access to a remote file: each read is one range request, but for the end of the file.

The end comes with the size, by one request: a footer, or all of a small file. Nothing else is kept.
Arrow asks for the ranges it needs, and merges neighbours itself with `pre_buffer`; a cache below it
would fetch bytes that Arrow did not ask for, and hide errors.

Requests to S3 that fsspec has no call for, or makes two of where one is enough.

They go through the connection that s3fs has made.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import fsspec
from fsspec.asyn import sync

from lakewarden.engine.storage.port import Entry, Versioned, service_code

HADOOP = "fs.s3a."
_PER_BUCKET = f"{HADOOP}bucket."
_ANONYMOUS = "AnonymousAWSCredentialsProvider"
_OF_HADOOP: Mapping[str, str] = {
    "access.key": "key",
    "secret.key": "secret",
    "session.token": "token",
    "endpoint": "endpoint_url",
    "endpoint.region": "region",
    "path.style.access": "path_style",
}
_OF_AWS: Mapping[str, str] = {
    "aws_access_key_id": "key",
    "aws_secret_access_key": "secret",
    "aws_session_token": "token",
    "aws_endpoint_url": "endpoint_url",
    "aws_region": "region",
}
_SWITCHES = frozenset({"anon", "requester_pays", "use_ssl", "path_style"})


def without_hadoop(options: Mapping[str, object]) -> dict[str, object]:
    """The options of a store that is not S3: a session may have S3's for other tables."""
    return {name: value for name, value in options.items() if not name.startswith(HADOOP)}


def s3fs_options(options: Mapping[str, object], bucket: str) -> dict[str, object]:
    """The options of a bucket as s3fs takes them.

    >>> s3fs_options({"fs.s3a.access.key": "A", "fs.s3a.endpoint": "http://here"}, "lake")
    {'key': 'A', 'endpoint_url': 'http://here'}
    >>> s3fs_options({"aws_region": "eu-north-1", "anon": "true"}, "lake")
    {'anon': True, 'client_kwargs': {'region_name': 'eu-north-1'}}
    """
    found = _of_hadoop(options, bucket)
    found |= {_OF_AWS[name]: value for name, value in options.items() if name in _OF_AWS}
    found |= {
        name: value
        for name, value in options.items()
        if name not in _OF_AWS and not name.startswith(HADOOP)
    }
    found |= {name: _is_on(found[name]) for name in _SWITCHES if name in found}
    if region := found.pop("region", None):
        found["client_kwargs"] = {"region_name": region, **_nested(found, "client_kwargs")}
    if found.pop("path_style", False):
        config = _nested(found, "config_kwargs")
        s3 = {"addressing_style": "path", **_nested(config, "s3")}
        found["config_kwargs"] = {**config, "s3": s3}
    return found


def _of_hadoop(options: Mapping[str, object], bucket: str) -> dict[str, object]:
    said = {
        name.removeprefix(HADOOP): value
        for name, value in options.items()
        if name.startswith(HADOOP) and not name.startswith(_PER_BUCKET)
    }
    own = f"{_PER_BUCKET}{bucket}."
    said |= {
        name.removeprefix(own): value for name, value in options.items() if name.startswith(own)
    }
    found = {ours: said[theirs] for theirs, ours in _OF_HADOOP.items() if said.get(theirs)}
    if "endpoint_url" in found:
        is_safe = _is_on(said.get("connection.ssl.enabled", "true"))
        found["endpoint_url"] = _with_scheme(str(found["endpoint_url"]), is_safe=is_safe)
    if _ANONYMOUS in str(said.get("aws.credentials.provider", "")):
        found["anon"] = True
    return found


def _with_scheme(endpoint: str, *, is_safe: bool) -> str:
    scheme = "https" if is_safe else "http"
    return endpoint if "://" in endpoint else f"{scheme}://{endpoint}"


def _nested(options: Mapping[str, object], name: str) -> Mapping[str, object]:
    nested = options.get(name)
    return nested if isinstance(nested, Mapping) else {}


def _is_on(value: object) -> bool:
    return value if isinstance(value, bool) else str(value).strip().lower() == "true"


Details = Mapping[str, object]

_TIMES = ("LastModified", "last_modified", "mtime", "modified", "updated", "created")


def relative_files(details: Iterable[Details], root: str) -> list[Entry]:
    """The files among the details, named as below the root.

    What ends in `/` is a marker that some tools write in place of a folder.
    """
    prefix = f"{root}/"
    return [
        Entry(_name(one).removeprefix(prefix), _size_bytes(one), modified_ms(one))
        for one in details
        if one["type"] == "file" and _is_below(one, prefix) and not _name(one).endswith("/")
    ]


def relative_folders(details: Iterable[Details], root: str) -> list[str]:
    """The folders among the details, named as below the root."""
    prefix = f"{root}/"
    return [
        _name(one).removeprefix(prefix).rstrip("/")
        for one in details
        if one["type"] == "directory" and _is_below(one, prefix)
    ]


def modified_ms(details: Details) -> int:
    """The time of the last change, or 0 for a store that keeps none."""
    for key in _TIMES:
        time = details.get(key)
        if isinstance(time, str):
            time = datetime.fromisoformat(time)
        if isinstance(time, datetime):
            return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
        if isinstance(time, int | float):
            return int(time * 1000)
    return 0


def _name(details: Details) -> str:
    return str(details["name"])


def _size_bytes(details: Details) -> int:
    size = details["size"]
    return size if isinstance(size, int) else 0


def _is_below(details: Details, prefix: str) -> bool:
    return _name(details).startswith(prefix) and _name(details).rstrip("/") != prefix[:-1]


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


@dataclass(frozen=True, slots=True)
class Tail:
    """The last bytes of an object, and how many there are in all."""

    content: bytes
    size_bytes: int


def s3_read_versioned(filesystem: fsspec.AbstractFileSystem, key: str) -> Versioned:
    """An object and its ETag from one answer, so that they belong together."""
    content, answer = sync(filesystem.loop, _read, filesystem, key)
    return Versioned(content, str(answer["ETag"]))


def s3_put_if_match(
    filesystem: fsspec.AbstractFileSystem, key: str, payload: bytes, version: str
) -> str | None:
    """Replace an object whose ETag is still that one; the new one, where the store gives it."""
    answer = filesystem.pipe_file(key, payload, IfMatch=version)
    return answer.get("ETag") if isinstance(answer, Mapping) else None


def s3_tail(filesystem: fsspec.AbstractFileSystem, key: str, length: int) -> Tail:
    """The end of an object, and its size, which for most objects spares all further requests."""
    try:
        content, answer = sync(filesystem.loop, _read, filesystem, key, Range=f"bytes=-{length}")
    except OSError as refusal:
        # No range fits into an object of no bytes.
        if service_code(refusal) != "InvalidRange":
            raise
        return Tail(b"", 0)
    size_bytes = str(answer.get("ContentRange", "")).rpartition("/")[2]
    return Tail(content, int(size_bytes) if size_bytes.isdecimal() else len(content))


def s3_children(filesystem: fsspec.AbstractFileSystem, key: str) -> Sequence[Details]:
    """The children of a folder; none where there is no such folder, which is not asked twice."""
    found: Sequence[Details] = sync(filesystem.loop, filesystem._lsdir, key)
    return found


def s3_below(filesystem: fsspec.AbstractFileSystem, key: str) -> Sequence[Details]:
    """All objects below a folder, however deep."""
    found: Sequence[Details] = sync(filesystem.loop, filesystem._lsdir, key, delimiter="")
    return found


def s3_remove(filesystem: fsspec.AbstractFileSystem, keys: Sequence[str]) -> None:
    """Remove up to a thousand objects by one request, whether they are there or not."""
    answer = sync(filesystem.loop, _delete, filesystem, keys)
    for refused in answer.get("Errors", ()):
        kind = PermissionError if refused.get("Code") == "AccessDenied" else OSError
        raise kind(f"The service answered {refused.get('Code')}.")


async def _delete(filesystem: fsspec.AbstractFileSystem, keys: Sequence[str]) -> Details:
    places = [filesystem.split_path(key) for key in keys]
    wanted = {"Objects": [{"Key": name} for _, name, _ in places], "Quiet": True}
    answer: Details = await filesystem._call_s3(
        "delete_objects", Bucket=places[0][0], Delete=wanted
    )
    return answer


async def _read(
    filesystem: fsspec.AbstractFileSystem, key: str, **how: str
) -> tuple[bytes, Details]:
    bucket, name, _ = filesystem.split_path(key)
    answer = await filesystem._call_s3("get_object", Bucket=bucket, Key=name, **how)
    try:
        content = await answer["Body"].read()
    finally:
        answer["Body"].close()
    return bytes(content), answer
