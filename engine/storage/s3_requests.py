"""Requests to S3 that fsspec has no call for, or makes two of where one is enough.

They go through the connection that s3fs has made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import fsspec
from fsspec.asyn import sync

from lakewarden.engine.storage.failures import service_code
from lakewarden.engine.storage.object_entries import Details
from lakewarden.engine.storage.port import Versioned


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
